// The one script: theme at once, then live parts, keys, and requests that carry the page's key. No library.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("anima-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;

  const $ = (where, from = document) => from.querySelector(where);
  const $$ = (where, from = document) => [...from.querySelectorAll(where)];

  // What was done, in words; with the change it was, it can be taken back right here; `after` is not said again then.
  function say(text, { after = "", undo = "", button = null, others = [] } = {}) {
    const box = $("#said");
    const one = button || undo && Object.assign(document.createElement("button"), { type: "button", textContent: "Undo" });
    if (undo) one.addEventListener("click", () => act("take-back", Object.assign(one, { change: undo, said: text })));
    box.replaceChildren(Object.assign(document.createElement("span"), { textContent: text + after }), ...others, ...(one ? [one] : []));
    box.classList.add("shown");
    clearTimeout(say.timer);
    const rest = () => { if (box.matches(":hover, :focus-within")) say.timer = setTimeout(rest, 2000); else quiet(); };
    say.timer = setTimeout(rest, one ? 12000 : 4000);
    return one;
  }
  function quiet() { $("#said").classList.remove("shown"); $("#said").replaceChildren(); }

  // -- asking the API ------------------------------------------------------------------------------------------------

  // Every request carries the key. Browsers give the cookie to any port of this machine, and so it opens nothing alone.
  async function ask(address, { headers, ...how } = {}) {
    const key = localStorage.getItem(root.dataset.cookie) || "";
    const answer = await fetch(address, { ...how, headers: { ...headers, "X-Anima-Key": key } });
    if (answer.status === 401) location.href = "/login";
    return answer;
  }

  // A part of a page; null where there is none.
  async function part(address, how = {}) {
    const answer = await ask(address, { ...how, headers: { Accept: "text/html" } });
    const drawn = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    return { ok: answer.ok, drawn };
  }

  async function send(method, path, body, headers = {}) {
    const answer = await ask("/api/v1" + path, {
      method,
      headers: { "Content-Type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const kind = answer.headers.get("Content-Type") || "";
    const value = kind.includes("json") && answer.status !== 204 ? await answer.json() : null;  // 204 has nothing in it
    if (!answer.ok) {
      const said = value && (value.detail || value.title) || "The server did not answer as it should.";
      throw Object.assign(new Error(value && value.hint ? `${said} (${value.hint})` : said), { problem: value });
    }
    return { status: answer.status, value, etag: answer.headers.get("ETag") };
  }

  // -- live parts ------------------------------------------------------------------------------------------------------

  let asked = 0;
  const shown = new WeakMap();  // the number of the request whose answer a live part shows
  async function refresh(element) {
    const number = ++asked;
    const { ok, drawn: fresh } = await part(element.dataset.live);
    if (!ok) return;
    if (shown.get(element) > number) return;  // a later request was answered first
    shown.set(element, number);
    const focus = document.activeElement && document.activeElement.closest("[id]");
    const unfolded = $$("details[data-keep][open]", element).map((one) => one.id);
    merge(element, fresh);
    for (const id of unfolded) { const one = document.getElementById(id); if (one) one.open = true; }
    localise(element);
    const again = focus && document.getElementById(focus.id);
    if (again && document.activeElement === document.body) again.focus();
    element.dispatchEvent(new CustomEvent("refreshed", { bubbles: true }));
  }

  const drawn = new WeakMap();  // each live child as the server drew it

  // Children are matched by id; one that is being edited is left as it is, and so is one that did not change.
  function merge(old, fresh) {
    const held = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
    const next = [...fresh.children].map((child) => {
      const was = child.id && held.get(child.id);
      if (!was) return child;
      if (was.hasAttribute("data-busy")) return was;
      if ($("[data-busy]", was)) { merge(was, child); return was; }
      return drawn.get(was) === child.outerHTML ? was : child;
    });
    for (const child of [...old.children]) {
      if (child.hasAttribute("data-busy") && !next.includes(child)) { child.dataset.gone = ""; next.push(child); }
    }
    for (const child of next) if (!drawn.has(child)) drawn.set(child, child.outerHTML);
    // What stays is not moved: whoever types in it keeps focus and caret.
    const kept = new Set(next);
    for (const node of [...old.childNodes]) if (!kept.has(node)) node.remove();
    let at = old.firstChild;
    for (const child of next) if (child === at) at = at.nextSibling; else old.insertBefore(child, at);
  }

  let waiting = new Map();
  function soon(element) {
    clearTimeout(waiting.get(element));
    waiting.set(element, setTimeout(() => refresh(element).catch(() => {}), 80));
  }

  async function count() {
    const { value } = await send("GET", "/waiting"), all = value.proposals + value.noted;
    const badge = $("#waiting");
    if (!badge) return;
    badge.textContent = all;
    badge.hidden = all === 0;
    badge.setAttribute("aria-label", all + " waiting");
  }

  // Events until the stream ends: blocks of lines, each a name and a value.
  async function* blocks(body) {
    let held = "";
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const found = (held + read.value).split("\n\n");
      held = found.pop();
      for (const block of found) yield Object.fromEntries(block.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]));
    }
  }

  async function listen(address) {
    const pulse = $("#pulse"), ending = new AbortController();
    let before = false, last = "";
    function told(kind, data = {}) {
      document.dispatchEvent(new CustomEvent("anima:" + kind, { detail: data }));
      for (const element of $$("[data-live]")) {
        if ((element.dataset.on || "").split(" ").includes(kind)) soon(element);
      }
      if (["proposal", "decided", "change", "resync"].includes(kind)) count().catch(() => {});
    }
    // What came between the drawing of the page and now was told to nobody.
    async function missed() {
      const badge = $("#waiting"), was = badge && badge.textContent;
      await count();
      if (badge && badge.textContent !== was) told("resync");
    }
    function state(name, words) { pulse.dataset.state = name; pulse.textContent = words; }
    addEventListener("pagehide", () => ending.abort());
    while (!ending.signal.aborted) {
      try {
        const answer = await ask(address, { signal: ending.signal, headers: last && { "Last-Event-ID": last } });
        if (answer.status === 401) return;
        if (!answer.ok) throw new Error(answer.statusText);
        state("on", "live");
        if (before) told("resync"); else missed().catch(() => {});
        before = true;
        for await (const { id, event, data } of blocks(answer.body)) {
          last = id || last;
          if (event) told(event, data ? JSON.parse(data) : {});
        }
      } catch { /* it is asked again, below */ }
      state("off", "not live");
      await new Promise((done) => { setTimeout(done, 2000); });
    }
  }

  function localise(from) {
    for (const time of $$("time[datetime]", from)) time.title = new Date(time.dateTime).toLocaleString();
  }

  // -- a list with its detail: rows `a.entry[data-id]` in `[data-list]`, and `#detail` beside it, or as a sheet on a phone -----

  const items = () => $$("[data-list] .entry:not([hidden])");
  const card = (from) => from.closest(".card, .noted");
  const isPhone = () => matchMedia("(max-width: 44rem)").matches;

  function sheet(open) {
    document.body.toggleAttribute("data-sheet", open);
    if (open && isPhone()) { const first = $("#panel h2, #panel h3, #panel .card, #panel"); if (first) { first.tabIndex = -1; first.focus(); } }
  }

  async function choose(row, { open = true, at = true } = {}) {
    const detail = $("#detail"), address = row.getAttribute("href");
    for (const one of $$('[data-list] .entry[aria-current="true"]')) one.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    if (detail.dataset.id !== row.dataset.id) {
      detail.dataset.id = row.dataset.id;
      detail.dataset.live = `${address}?part=detail`;
      if (at) history.replaceState(null, "", address);
      detail.setAttribute("aria-busy", "true");
      await refresh(detail);
      if (detail.dataset.id !== row.dataset.id) return;
      detail.removeAttribute("aria-busy");
      if ($("[data-shown]", detail)) { opened.add(face(row)); mark(); }
    }
    if (open && isPhone()) sheet(true);
  }

  // The row after one that is done with, and its detail.
  async function next(id, rows) {
    sheet(false);
    const at = rows.findIndex((one) => one.dataset.id === id);
    const left = items(), after = [...rows.slice(at + 1), ...rows.slice(0, at).reverse()].map((one) => left.find((each) => each.dataset.id === one.dataset.id)).find(Boolean);
    if (after) { after.focus({ preventScroll: false }); await choose(after, { open: false }); return; }
    const detail = $("#detail");
    if (detail) { detail.replaceChildren(); detail.dataset.id = ""; }
    $("#main").focus();
  }

  // -- the inbox -------------------------------------------------------------------------------------------------------

  async function decide(one, verb, body) {
    const wrong = $(".wrong", one), rows = items(), id = one.dataset.id;
    wrong.hidden = true;
    for (const button of $$("button", one)) button.disabled = true;
    try {
      const { status, value } = await send("POST", `/pending/${id}/${verb}`, body);
      if (status === 202) throw new Error("It still waits: this file needs your yes on this page or at a terminal.");
      one.remove();
      const row = items().find((each) => each.dataset.id === id);
      if (row) { row.remove(); next(id, rows).catch(() => {}); }
      return value && value[0] || {};
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      return null;
    } finally {
      for (const button of $$("button", one)) button.disabled = false;
    }
  }

  async function settle() {
    await count();
    for (const live of $$("#cards")) await refresh(live);
  }

  // What was there when the owner looked, and what they opened since. A yes to all is for these alone.
  let looked = new Set();
  const opened = new Set();
  const face = (one) => `${one.dataset.id} ${one.dataset.content}`;
  const rowsOf = (kind) => items().filter((one) => one.dataset.kind === kind);
  const ready = () => rowsOf("proposal").filter((one) => one.hasAttribute("data-many") && looked.has(face(one)) && (one.hasAttribute("data-whole") || opened.has(face(one))));

  function mark() {
    if (!$("#batch")) return;
    const late = items().filter((one) => !looked.has(face(one)));
    for (const one of late) one.classList.add("late");
    const all = ready(), plain = rowsOf("noted").filter((one) => one.hasAttribute("data-plain") && looked.has(face(one)));
    const put = (name, number, least) => { const button = $(`[data-act=${name}]`); if (button) { $("span", button).textContent = number; button.hidden = number < least; } };
    put("approve-all", all.length, 2);
    put("keep-all", plain.length, 2);
    put("deny-all", rowsOf("proposal").filter((one) => looked.has(face(one))).length, 2);
    const told = $("[data-late]");
    if (told) {
      told.hidden = late.length === 0;
      $("span", told).textContent = late.length === 1 ? "One came while you were looking. It is not in “all”." : `${late.length} came while you were looking. They are not in “all”.`;
    }
    const wide = $("#filters [aria-pressed=true]");
    if (wide) filter(wide.value);
  }

  function filter(kind) {
    for (const button of $$("#filters button")) button.setAttribute("aria-pressed", String(button.value === kind));
    for (const one of $$("[data-list] .entry")) one.hidden = kind !== "all" && !one.dataset.is.split(" ").includes(kind);
  }

  // When rows or cards come or go, others move to where the pointer is: for a moment none of them takes a click.
  let stood = "";
  function moved() {
    const now = $$(".card[data-id]").map(face).join();
    if (now === stood) return;
    stood = now;
    const held = $$(".card [data-act=approve]").filter((button) => button !== document.activeElement);
    for (const button of held) button.disabled = true;
    setTimeout(() => { for (const button of held) button.disabled = false; }, 600);
  }

  async function approveAll() {
    const all = ready(), shown = all.map((one) => ({ id: one.dataset.id, content: one.dataset.content }));
    const { value } = await send("POST", "/pending/approve", { cards: shown });
    const left = Object.entries(value.left).map(([id, why]) => ` ${id}: ${why}`);
    say(`Approved ${value.approved.length} of ${all.length}.${left.join("")}`);
    await after(settle);
  }

  async function denyAll() {
    const all = rowsOf("proposal").filter((one) => looked.has(face(one)));
    if (!confirm(`Deny all ${all.length}? Nothing of them is written.`)) return;
    for (const one of all) await send("POST", `/pending/${one.dataset.id}/deny`);
    say(`Denied ${all.length}; nothing was written.`);
    await after(settle);
  }

  // Does something to the list, and shows the row that is first then.
  async function after(work) {
    const rows = items(), detail = $("#detail");
    await work();
    if (detail && !items().some((one) => one.dataset.id === detail.dataset.id)) await next(detail.dataset.id, rows);
  }

  // The text itself comes only now, and only into the box: the page around it shows it inert.
  async function edit(one, open) {
    const editor = $(".editor", one);
    if (!editor) return;
    if (open && editor.hidden) {
      const { value } = await send("GET", `/pending/${one.dataset.id}/new`);
      if (value.content !== one.dataset.content) throw new Error("It changed since you looked; load the page again.");
      $("textarea", editor).value = value.text;
    }
    editor.hidden = !open;
    one.toggleAttribute("data-busy", open);
    if (open) $("textarea", editor).focus(); else one.focus();
  }

  // Whether what must be typed for a yes stands there.
  function typed(box) {
    const word = box && box.dataset.word;
    const done = !box || (word ? box.value.trim().toLowerCase() === word : box.value);
    if (!done) box.focus();
    return done;
  }

  // Danger takes a second key, or a second click: the first only says so.
  function armed(one) {
    const button = $("[data-act=approve]", one);
    if (!button || !one.hasAttribute("data-danger") || button.hasAttribute("data-armed")) return true;
    if (button.disabled) return false;  // it came this very moment
    button.setAttribute("data-armed", "");
    button.firstChild.textContent = "Once more: approve the danger ";
    button.focus();
    return false;
  }

  async function approve(from, edited) {
    const one = card(from), whole = one && $("[data-whole]", one);
    if (!one) return;
    if (one.dataset.noted) { await review("keep", one); return; }
    if (whole) { whole.click(); return; }
    const name = $("[name=typed]", one);
    if (!typed(name) || !armed(one)) return;
    const body = { content: one.dataset.content, typed: name && !name.dataset.word ? name.value : "" };
    const part = edited ? { part: $("textarea", one).value } : {};
    const where = one.dataset.path, done = await decide(one, "approve", { ...body, ...part });
    const written = one.hasAttribute("data-forget") ? `Forgotten: ${where}` : `Approved and written. ${where}`;
    if (done) { say(edited ? `Approved as you edited it: ${where}.` : written, { undo: done.change }); await settle(); }
  }

  // Noted lines: one, or all on the page in which the scan saw nothing and that were there when the owner looked.
  async function review(verb, from) {
    const one = from.closest("[data-noted]"), rows = items();
    if (verb === "keep" && one && !typed($("[name=typed]", one))) return;
    const names = one ? [one.dataset.noted] : rowsOf("noted").filter((each) => each.hasAttribute("data-plain") && looked.has(face(each))).map((each) => each.dataset.id);
    const heading = verb === "keep" && one && $("[name=section]", one), section = heading ? heading.value.trim() : null;
    const { value } = await send("POST", `/noted/${verb}`, { names, section });
    const first = (value && value[0]) || {}, kept = names.length > 1 ? ` ${names.length}` : first.section ? ` under ${first.section}` : "";
    say(verb === "keep" ? `Kept${kept}. Prompts hold it from now on.` : "Dropped.", { undo: first.change || "" });
    await after(settle);
    if (one && rows.length) await next(names[0], rows);
  }

  const acts = {
    theme() {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("anima-theme", root.dataset.theme); } catch { /* a page may do without */ }
    },
    keys() { $("#keys").showModal(); },
    async leave() {
      await ask("/logout", { method: "POST" });
      localStorage.removeItem(root.dataset.cookie);
      location.href = "/login";
    },
    "sheet-end"() {
      sheet(false);
      const row = $('[data-list] .entry[aria-current="true"], .row.chosen a.mark');
      if (row) row.focus();
    },
    filter(from) { filter(from.value); },
    approve: (from) => approve(from, false),
    "approve-edited": (from) => approve(from, true),
    async deny(from) {
      const one = card(from);
      if (one && one.dataset.noted) { await review("drop", one); return; }
      if (one && await decide(one, "deny")) { say("Denied; nothing was written."); await settle(); }
    },
    async edit(from) { if (card(from)) await edit(card(from), true); },
    async "edit-end"(from) { await edit(card(from), false); },
    "approve-all": approveAll,
    "deny-all": denyAll,
    "keep-all": (from) => review("keep", from),
    "keep-noted": (from) => review("keep", from),
    "drop-noted": (from) => review("drop", from),
    looked() { for (const one of items()) { looked.add(face(one)); one.classList.remove("late"); } mark(); },
    async "allow-kind"(from) {
      const one = card(from);
      await send("POST", "/settings/rules", { id: one.dataset.id, content: one.dataset.content });
      from.disabled = true;
      say("The rule stands first in anima.toml, and counts from now on. This one still waits for your yes.");
    },
    async copy(from) {
      const text = document.getElementById(from.dataset.of).textContent;
      try { await navigator.clipboard.writeText(text); say("Copied."); } catch {
        getSelection().selectAllChildren(document.getElementById(from.dataset.of));
        say("Selected; copy it with your own keys.");
      }
    },
    async index() { const { value } = await send("POST", "/index", {}); say(`${value.documents} documents are in the index; ${value.put} were read again.`); },
    async snapshot(from) {
      if (from.ariaBusy === "true") return;
      const wrong = $("#snapshot-wrong");
      wrong.hidden = true;
      from.ariaBusy = "true";  // not disabled: the focus stays where it is
      try {
        const { value } = await send("POST", "/snapshots");
        say(value.fresh ? "Taken, read back and found whole." : "Nothing changed since the last one.");
        await refresh($("#snapshots"));
      } catch (error) {
        wrong.textContent = error.message;
        wrong.hidden = false;
      } finally { from.ariaBusy = "false"; }
    },
    async revoke(from) {
      if (!confirm(`Take back “${from.dataset.name}”? Whoever uses it is locked out at once.`)) return;
      await send("DELETE", "/tokens/" + from.dataset.id);
      document.getElementById("token-" + from.dataset.id).remove();
      say("Taken back.");
    },
    // Names the newest change first; a second press takes it back.
    async undo() {
      const held = $("#said [data-confirm]");
      if (held) { held.click(); return; }
      const [{ value: done }, { value: told }] = await Promise.all([send("GET", "/changes?limit=1"), send("GET", "/history?limit=1")]);
      if (!done.items.length) { say("There is nothing to undo."); return; }
      const [change] = done.items, words = told.items.length ? told.items[0].subject : `${change.what} ${change.paths.join(", ")}`;
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo it", change: change.id, said: words });
      button.dataset.confirm = "";
      button.addEventListener("click", () => act("take-back", button));
      say(`Undo “${words}”?`, { button }).focus();
    },
    async "take-back"(from) {
      const { value } = await send("POST", "/undo", { change: from.change });
      say(value.length ? `Taken back in ${value.map((receipt) => receipt.path).join(", ")}: ${from.said}` : "There was nothing left of it to undo.");
      await settle();
    },
  };

  async function act(name, from) {
    try { await acts[name](from); } catch (error) { say(error.message); }
  }

  // -- keys ------------------------------------------------------------------------------------------------------------

  function step(by) {
    const all = items().length ? items() : $$(".card, [data-step]");
    if (!all.length) return;
    const near = document.activeElement.closest("#detail") && $('[data-list] .entry[aria-current="true"]') || document.activeElement;
    const here = all.findIndex((one) => one === near || one.contains(near));
    const one = all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + by))];
    one.focus();
    if (one.matches(".entry")) choose(one, { open: false }).catch((error) => say(error.message));
  }

  // A key decides only about what is chosen and seen: the card around the focus, or what stands beside the list. What came
  // there this very moment is not seen yet, and its button says so; what is decided by itself gets its yes once it is chosen.
  function chosen(name) {
    const near = document.activeElement, row = near.closest("[data-list] .entry"), detail = $("#detail");
    const beside = detail && !detail.ariaBusy && (!row || detail.dataset.id === row.dataset.id) && $(".card, .noted", detail);
    const alone = name === "approve" && $('[data-list] .entry[aria-current="true"]:is(.identity, .forget, .call, .warned)');
    const first = !alone && beside && !$("[data-act=approve]:disabled", beside);
    const one = near.closest(".card[data-id], .noted") || beside && beside.checkVisibility() && (row || first) && beside;
    if (one) act(name, one); else if (row) choose(row).catch((error) => say(error.message)); else step(1);
  }

  let leading = false;
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
    const from = document.activeElement;
    if (event.key === "Escape" && document.body.hasAttribute("data-sheet")) { act("sheet-end", from); return; }
    if (leading) {
      leading = false;
      const page = $(`#palette-list [data-key="${CSS.escape(event.key)}"]`);
      if (page) { event.preventDefault(); location.href = page.dataset.href; }
      return;
    }
    const on = {
      g: () => { leading = true; setTimeout(() => { leading = false; }, 1500); },
      j: () => step(1), k: () => step(-1),
      a: () => chosen("approve"), d: () => chosen("deny"), e: () => { const link = $("a[data-edit]"); if (link) link.click(); else chosen("edit"); },
      u: () => act("undo", from), "?": () => act("keys", from),
      "/": () => { const box = $("[data-search]"); if (box) box.focus(); else act("palette", from); },
    }[event.key];
    if (on) { event.preventDefault(); on(); }
  }

  // The code becomes a cookie and a key; the key stays where only pages of this origin can read it.
  async function comeIn(code) {
    const answer = await fetch("/login", { method: "POST", body: new URLSearchParams({ code }) });
    const value = await answer.json();
    if (answer.ok) {
      localStorage.setItem(root.dataset.cookie, value.key);
      location.replace("/");
      return;
    }
    const wrong = $(".wrong");
    wrong.textContent = `${value.detail}${value.hint ? ` (${value.hint})` : ""}`;
    wrong.hidden = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of $$("[data-live]")) for (const child of element.children) drawn.set(child, child.outerHTML);
    localise(document);
    const tab = $(".family [aria-current]");  // on a phone it may stand beside the screen
    if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - 48;
    looked = new Set($$("[data-list] .entry").map(face));
    stood = $$(".card[data-id]").map(face).join();
    const first = $("#detail[data-id]"), row = first && items().find((one) => one.dataset.id === first.dataset.id);
    if (row) { row.setAttribute("aria-current", "true"); if ($("[data-shown]", first)) opened.add(face(row)); if (location.pathname === row.getAttribute("href")) sheet(true); }
    mark();
    document.addEventListener("refreshed", () => {
      const detail = $("#detail"), all = items(), now = detail && all.find((one) => one.dataset.id === detail.dataset.id);
      if (now) now.setAttribute("aria-current", "true");
      mark();
      moved();
      // Something stands beside the list, as long as there is something; what is being edited stays.
      if (!detail || now || $("[data-busy]", detail) || isPhone()) return;
      if (all.length) choose(all[0], { open: false, at: false }).catch(() => {}); else { detail.dataset.id = ""; detail.replaceChildren(); }
    });
    document.addEventListener("click", (event) => {
      const item = event.target.closest("[data-list] .entry");
      if (!item || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(item).catch((error) => say(error.message));
    });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (button && acts[button.dataset.act]) { event.preventDefault(); act(button.dataset.act, button); }
    });
    document.addEventListener("paste", (event) => {  // a box takes as much as it may hold; the rest is not dropped unsaid
      const box = event.target.closest("[maxlength]"), most = box && box.maxLength;
      const left = box && box.value.length - (box.selectionEnd - box.selectionStart) + event.clipboardData.getData("text").length - most;
      if (left > 0) say(`Only ${most.toLocaleString()} characters fit here: ${left.toLocaleString()} at the end were left out. A long text is a page of its own.`);
    });
    document.addEventListener("keydown", key);
    if (document.body.dataset.events) listen(document.body.dataset.events);
    const door = $("#door");
    if (!door) return;
    door.addEventListener("submit", (event) => { event.preventDefault(); comeIn($("#code").value); });
    function linked() {  // the code of the link; it leaves the address bar before anything else
      if (location.hash.length < 2) return;
      $("#code").value = decodeURIComponent(location.hash.slice(1));
      history.replaceState(null, "", "/login");
      comeIn($("#code").value);
    }
    addEventListener("hashchange", linked);
    linked();
  });

  window.anima = { ask, blocks, send, part, say, refresh, acts, act, sheet, isPhone, items, next, choose };
})();
