// Search and every command, by Ctrl-K or ⌘K: pages and acts by their words, and what memory says, while one types.
"use strict";
(() => {
  const { send, act, acts } = window.anima;
  const $ = (where, from = document) => from.querySelector(where);
  const box = $("#palette"), words = $("#palette-words"), list = $("#palette-list");
  const fixed = [...list.children];
  let at = 0, newest = 0, timer;

  if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of document.querySelectorAll(".find kbd")) key.textContent = "⌘K";

  const shown = () => [...list.children].filter((one) => !one.hidden);
  function point(to) {
    const all = shown();
    at = all.length ? (to + all.length) % all.length : 0;
    for (const one of list.children) one.removeAttribute("aria-selected");
    if (!all.length) { words.removeAttribute("aria-activedescendant"); return; }
    all[at].setAttribute("aria-selected", "true");
    words.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  }

  function row(id, said, more, href) {
    const one = Object.assign(document.createElement("li"), { id });
    one.setAttribute("role", "option");
    one.dataset.href = href;
    one.append(Object.assign(document.createElement("span"), { textContent: said, dir: "auto" }), Object.assign(document.createElement("span"), { className: "dim", textContent: more }));
    return one;
  }

  async function look(asked, mine) {
    const { value } = await send("GET", `/search?scope=main&limit=6&q=${encodeURIComponent(asked)}`);
    if (mine !== newest) return;
    const place = (hit) => "/memory/" + hit.path.split("/").map(encodeURIComponent).join("/") + `?line=${hit.start_line}#L${hit.start_line}`;
    list.append(...value.hits.map((hit, n) => row(`hit-${n}`, hit.text.trim().split("\n").find((line) => line && !line.startsWith("#")) || hit.text.slice(0, 80), `${hit.path}:${hit.start_line}`, place(hit))));
    if (at === 0) point(0);
  }

  function narrow() {
    const asked = words.value.trim(), lower = asked.toLowerCase(), mine = ++newest;
    clearTimeout(timer);
    for (const one of fixed) one.hidden = lower !== "" && !lower.split(/\s+/).every((word) => one.textContent.toLowerCase().includes(word));
    for (const one of [...list.children]) if (!fixed.includes(one)) one.remove();
    if (asked) {
      list.append(row("find-all", `Search for “${asked}”`, "", `/search?q=${encodeURIComponent(asked)}`));
      if (asked.length > 1) timer = setTimeout(() => look(asked, mine).catch(() => {}), 140);
    }
    point(0);
  }

  function go(one) {
    if (!one) return;
    box.close();
    if (one.dataset.href) location.href = one.dataset.href; else act(one.dataset.do, one);
  }

  acts.palette = () => { words.value = ""; narrow(); box.showModal(); words.focus(); };
  acts["new-talk"] = () => { location.href = "/chat"; };
  acts["remember-now"] = () => { const here = $("#fact"); if (here) here.focus(); else location.href = "/memory#fact"; };

  words.addEventListener("input", narrow);
  words.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) { event.preventDefault(); point(at + by); }
    if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); go(shown()[at]); }
  });
  list.addEventListener("click", (event) => go(event.target.closest("li")));
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (box.open) box.close(); else if (!$("dialog[open]")) acts.palette();
    }
  });
})();
