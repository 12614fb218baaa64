// What a page looks like to somebody who cannot see it well, or has no mouse: faults as sentences, each list empty when good.
() => {
  const all = [...document.querySelectorAll("body *")];
  const style = (one) => getComputedStyle(one);
  const name = (one) => {
    const said = one.id ? `#${one.id}` : one.className && typeof one.className === "string" ? `.${one.className.trim().replace(/\s+/g, ".")}` : "";
    return `${one.localName}${said} "${(one.textContent || one.value || "").trim().replace(/\s+/g, " ").slice(0, 40)}"`;
  };
  const shown = (one) => one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true, contentVisibilityAuto: true });
  const drawn = (one) => shown(one) && one.getClientRects().length > 0 && !one.closest(".unseen, .skip");

  // -- names -----------------------------------------------------------------------------------------------------------
  const byIds = (one, attribute) => (one.getAttribute(attribute) || "").split(/\s+/).filter(Boolean)
    .map((id) => document.getElementById(id)?.textContent || "").join(" ").trim();
  const spoken = (one) => [...one.childNodes].map((node) => node.nodeType === 3 ? node.data
    : node.nodeType !== 1 || node.getAttribute("aria-hidden") === "true" ? "" : node.getAttribute("aria-label") || node.alt || spoken(node)).join(" ").trim();
  const label = (one) => byIds(one, "aria-labelledby") || (one.getAttribute("aria-label") || "").trim()
    || [...(one.labels || [])].map(spoken).join(" ").trim()
    || (/^(a|button|summary)$/.test(one.localName) ? spoken(one) : "") || (one.type === "submit" && one.localName === "input" ? one.value : "")
    || (one.getAttribute("role") ? "" : one.localName === "pre" ? spoken(one) : "");
  const controls = all.filter((one) => one.matches("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]:not(main):not([tabindex='-1']), [role=button], [role=tab]"));
  const unlabelled = controls.filter((one) => shown(one) && !label(one)).map(name);
  const images = all.filter((one) => one.matches("img:not([alt]), svg[role=img]:not([aria-label]):not(:has(title))")).map(name);
  const lists = all.filter((one) => one.matches("section[aria-labelledby], article[aria-labelledby], dialog[aria-labelledby]") && !byIds(one, "aria-labelledby")).map(name);

  // -- shape -----------------------------------------------------------------------------------------------------------
  const headings = all.filter((one) => /^h[1-6]$/.test(one.localName) && shown(one) && !one.closest("dialog"));
  const ones = headings.filter((one) => one.localName === "h1").length;
  const ids = all.map((one) => one.id).filter(Boolean);
  const twice = [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
  const broken = all.filter((one) => one.matches("label[for]") && !document.getElementById(one.getAttribute("for"))).map(name);
  const nested = all.filter((one) => one.matches("a a, a button, button button, button a, label label")).map(name);

  // -- width -----------------------------------------------------------------------------------------------------------
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const scrolls = (one) => { for (let at = one.parentElement; at; at = at.parentElement) if (/auto|scroll|hidden|clip/.test(style(at).overflowX)) return true; return false; };
  const outside = wide <= 0 ? [] : all.filter((one) => drawn(one) && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !scrolls(one)).map(name).slice(0, 5);
  const unreachable = all.filter((one) => drawn(one) && /auto|scroll/.test(style(one).overflowX) && one.scrollWidth > one.clientWidth + 1
    && one.tabIndex < 0 && one !== document.documentElement && !one.matches("textarea, input, main, body")
    && !one.querySelector("a[href], button, input, [tabindex='0']")).map(name);

  // -- contrast: the colour of each text against what is painted behind it -----------------------------------------------
  const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const seen = new Map();
  const colour = (text) => {
    if (!seen.has(text)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = text;
      brush.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
      seen.set(text, [r, g, b, a / 255]);
    }
    return seen.get(text);
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const canvas = () => matchMedia("(prefers-color-scheme: dark)").matches && style(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const paint = colour(style(at).backgroundColor);
      if (paint[3] > 0) layers.push(paint);
      if (paint[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), canvas());
  };
  const faded = (one) => { let by = 1; for (let at = one; at; at = at.parentElement) by *= Number(style(at).opacity); return by; };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ratio = (a, b) => { const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y); return (bright + 0.05) / (dark + 0.05); };
  const pale = [];
  let texts = 0;
  const check = (one, ink, what) => {
    const ground = behind(one), paint = colour(ink);
    const found = ratio(over([paint[0], paint[1], paint[2], paint[3] * faded(one)], ground), ground);
    texts += 1;
    if (found < 4.5) pale.push(`${found.toFixed(2)} ${what}`);
  };
  for (const one of all) {
    const said = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (said && drawn(one) && !one.closest("[disabled], option, datalist, script") && Number(style(one).fontSize.slice(0, -2)) > 0)
      check(one, one.closest("svg") ? style(one).fill : style(one).color, name(one));
    if (one.matches("input, textarea, select") && drawn(one) && !one.disabled) check(one, style(one).color, name(one));
    if (one.placeholder && drawn(one)) check(one, getComputedStyle(one, "::placeholder").color, `placeholder of ${name(one)}`);
  }

  return { unlabelled, images, lists, ones, twice, broken, nested, wide: wide > 0 ? [`${wide} pixels too wide`, ...outside] : [], unreachable,
           pale: [...new Set(pale)], texts, titled: document.title.trim() !== "", lang: document.documentElement.lang };
}
