// Settings and the guided start: fields of a document, keys of anima.toml, programs to connect. What a program's files would
// become is shown first; the yes is bound to that.
"use strict";
(() => {
  const { send, say, acts, refresh } = window.anima;
  const $ = (where, from = document) => from.querySelector(where);
  const $$ = (where, from = document) => [...from.querySelectorAll(where)];

  function wrong(form, text) { const box = $(".wrong", form); box.textContent = text; box.hidden = !text; }

  // -- the fields of a page such as USER.md: `- **Name:** …` ------------------------------------------------------------------

  function filled(text, fields) {
    for (const [name, value] of fields) {
      const line = new RegExp(`^([-*+][ \\t]+\\*\\*${name}:\\*\\*).*$`, "m"), put = value.replace(/[\r\n]+/g, " ").trim();
      text = line.test(text) ? text.replace(line, (_, key) => `${key} ${put}`) : `${text.replace(/\n*$/, "\n")}- **${name}:** ${put}\n`;
    }
    return text;
  }

  async function write(form) {
    const path = form.dataset.fields, fields = [...new FormData(form)].filter(([, value]) => value.trim());
    const { value, etag } = await send("GET", "/files/" + path);
    const done = await send("PUT", "/files/" + path, { text: filled(value.text, fields) }, { "If-Match": etag });
    const ids = $("[data-owner]", form);
    if (ids && ids.value.trim()) await send("PUT", "/settings/owner", { value: ids.value.split(/\s+/).filter(Boolean) });
    say(`Written to ${path}.`, { undo: done.value.change });
    if (path === "IDENTITY.md") await over();
    idle(form);
    const guide = $("#guide-live");
    if (guide) await refresh(guide);
  }

  // Who both are is said now, so the page that asks for a first conversation about it goes, as it would after one.
  async function over() {
    const { value: all } = await send("GET", "/tree"), { value: user } = await send("GET", "/files/USER.md");
    if (all.entries.includes("BOOTSTRAP.md") && !user.text.includes("**Name:** _(")) await send("DELETE", "/files/BOOTSTRAP.md");
  }

  // A step that is being filled in is not drawn anew under the hands of who does.
  const idle = (form) => { const step = form.closest(".guide-step"); if (step) step.removeAttribute("data-busy"); };
  const isBlank = (form) => [...form.elements].every((one) => one.value === one.defaultValue || one.type === "submit" || one.matches("[data-zone]"));
  document.addEventListener("focusin", ({ target }) => { const step = target.closest(".guide-step:has(form)"); if (step && target.form) step.setAttribute("data-busy", ""); });
  document.addEventListener("focusout", ({ target }) => { if (target.form && target.closest(".guide-step") && isBlank(target.form)) idle(target.form); });

  async function set(form) {
    let value = form.elements.value.value.trim();
    if ("lines" in form.dataset) value = value ? value.split(/\s+/) : null;
    else if ("flag" in form.dataset) value = value === "true";
    else if ("number" in form.dataset) value = value ? Number(value) : null;
    else if (!value) value = form.dataset.setting.endsWith(".at") ? "" : null;
    await send("PUT", "/settings/" + form.dataset.setting, { value });
    const from = $(".from", form);
    if (from) from.textContent = value === null ? "default" : "anima.toml";
    say(value === null ? `${form.dataset.setting} is what it is by itself again.` : `${form.dataset.setting} is set, and holds at once.`);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-fields], form[data-setting]");
    if (!form) return;
    event.preventDefault();
    wrong(form, "");
    (form.dataset.fields ? write(form) : set(form)).catch((error) => wrong(form, error.message));
  });

  // -- programs ------------------------------------------------------------------------------------------------------------------

  function drawn(lines) {
    const box = document.createElement("pre");
    box.className = "diff plan";
    box.tabIndex = 0;
    for (const line of lines) {
      const row = box.appendChild(document.createElement("div"));
      row.className = line.kind;
      row.textContent = { add: "+ ", cut: "− " }[line.kind] ? { add: "+ ", cut: "− " }[line.kind] + line.text : line.text;
    }
    return box;
  }

  async function connect(from) {
    const { host, title, remove } = from.dataset, place = $("#plan"), wish = { remove: remove === "yes" };
    const { value } = await send("POST", `/connect/${host}`, wish);
    const head = Object.assign(document.createElement("h3"), { tabIndex: -1, textContent: wish.remove ? `Take ${title} out` : `Connect ${title}` });
    const said = Object.assign(document.createElement("p"), { textContent: value.lines.length ? "These files of it would change:" : "There is nothing to change." });
    const go = Object.assign(document.createElement("button"), { type: "button", className: "main", textContent: wish.remove ? "Take it out" : "Change these files" });
    const leave = Object.assign(document.createElement("button"), { type: "button", textContent: "Leave it" });
    const acts = Object.assign(document.createElement("p"), { className: "acts" });
    leave.addEventListener("click", () => { place.replaceChildren(); from.focus(); });
    const step = from.closest(".guide-step");
    if (step) step.setAttribute("data-busy", "");
    leave.addEventListener("click", () => idle(from));
    go.addEventListener("click", async () => {
      idle(from);
      try {
        await send("POST", `/connect/${host}`, { ...wish, content: value.content });
        const then = Object.assign(document.createElement("p"), { textContent: wish.remove ? `${title} is as it was before.` : `Done. ${value.then}` });
        place.replaceChildren(then);
        say(wish.remove ? `${title} is taken out.` : `${title} is connected.`);
      } catch (error) { say(error.message); }
    });
    acts.append(...(value.lines.length ? [go] : []), leave);
    place.replaceChildren(head, said, ...(value.lines.length ? [drawn(value.lines)] : []), acts);
    head.focus();
  }

  Object.assign(acts, {
    connect,
    async "hide-guide"() { document.cookie = `guide-${document.documentElement.dataset.cookie}=hidden; path=/; max-age=31536000; SameSite=Strict`; location.reload(); },
    async "use-model"(from) { await send("PUT", "/model/" + encodeURIComponent(from.dataset.name)); location.reload(); },
    async "drop-rule"(from) {
      await send("DELETE", "/settings/rules/" + encodeURIComponent(from.dataset.id));
      from.closest("li").remove();
      say(`The rule ${from.dataset.id} is out, and counts no longer.`);
    },
  });

  const zones = $("#zones");
  if (zones && Intl.supportedValuesOf) for (const name of Intl.supportedValuesOf("timeZone")) zones.append(Object.assign(document.createElement("option"), { value: name }));
  for (const box of $$("[data-zone]")) if (!box.value) box.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
})();
