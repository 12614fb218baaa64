// The one script: theme at once, then live parts, keys, and requests that carry the page's key. No library.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("anima-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;

  const $ = (where, from = document) => from.querySelector(where);
  const $$ = (where, from = document) => [...from.querySelectorAll(where)];

  function say(text) {
    const box = $("#said");
    box.textContent = text;
    box.classList.add("shown");
    clearTimeout(say.timer);
    say.timer = setTimeout(() => box.classList.remove("shown"), 4000);
  }

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
    merge(element, fresh);
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
    old.replaceChildren(...next);
  }

  let waiting = new Map();
  function soon(element) {
    clearTimeout(waiting.get(element));
    waiting.set(element, setTimeout(() => refresh(element).catch(() => {}), 80));
  }

  async function count() {
    const { value } = await send("GET", "/pending");
    const badge = $("#waiting");
    if (!badge) return;
    badge.textContent = value.items.length;
    badge.hidden = value.items.length === 0;
    badge.setAttribute("aria-label", value.items.length + " waiting");
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
      if (kind === "proposal" || kind === "decided" || kind === "resync") count().catch(() => {});
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

  // -- the inbox -------------------------------------------------------------------------------------------------------

  const cards = () => $$(".card[data-id]");
  const card = (from) => from.closest(".card");

  async function decide(one, verb, body) {
    const wrong = $(".wrong", one);
    wrong.hidden = true;
    for (const button of $$("button", one)) button.disabled = true;
    try {
      const { status } = await send("POST", `/pending/${one.dataset.id}/${verb}`, body);
      if (status === 202) throw new Error("It still waits: this file needs your yes on this page or at a terminal.");
      const next = cards()[cards().indexOf(one) + 1] || cards()[cards().indexOf(one) - 1];
      one.remove();
      if (next) next.focus();
      return true;
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      return false;
    } finally {
      for (const button of $$("button", one)) button.disabled = false;
    }
  }

  async function settle() {
    await count();
    const live = $("#cards");
    if (live) await refresh(live);
  }

  async function denyAll(batch) {
    const all = $$(".card", document.getElementById(batch));
    let done = 0;
    for (const one of all) if (await decide(one, "deny")) done += 1;
    say(`Denied ${done} of ${all.length}.`);
    await settle();
  }

  // -- what was there when the owner looked. A yes to all is for these alone; what came since is counted in by hand. --------

  let looked = new Set();
  const face = (one) => `${one.dataset.id} ${one.dataset.content}`;
  const lookedAt = (batch) => $$(".card[data-many]", batch).filter((one) => looked.has(face(one)));

  function mark() {
    for (const batch of $$(".batch")) {
      const known = lookedAt(batch), late = $$(".card", batch).filter((one) => !looked.has(face(one)));
      const every = $("[data-act=approve-all]", batch), told = $("[data-late]", batch);
      if (every) { $("span", every).textContent = known.length; every.hidden = known.length < 2; }
      if (!told) continue;
      told.hidden = late.length === 0;
      $("span", told).textContent = late.length === 1 ? "One came while you were looking. It is not in “all”." : `${late.length} came while you were looking. They are not in “all”.`;
    }
  }

  // When cards come or go, others move to where the pointer is: for a moment none of them takes a click.
  let stood = "";
  function moved() {
    const now = cards().map(face).join();
    if (now === stood) return;
    stood = now;
    const held = $$(".card [data-act=approve]").filter((button) => button !== document.activeElement);
    for (const button of held) button.disabled = true;
    setTimeout(() => { for (const button of held) button.disabled = false; }, 600);
  }

  async function approveAll(batch) {
    const all = lookedAt(document.getElementById(batch));
    const shown = all.map((one) => ({ id: one.dataset.id, content: one.dataset.content }));
    const { value } = await send("POST", "/pending/approve", { cards: shown });
    const left = Object.entries(value.left).map(([id, why]) => ` ${id}: ${why}`);
    say(`Approved ${value.approved.length} of ${all.length}.${left.join("")}`);
    await settle();
  }

  // The text itself comes only now, and only into the box: the page around it shows it inert.
  async function edit(one, open) {
    const editor = $(".editor", one);
    if (!editor) return;
    if (open && editor.hidden) {
      const { value } = await send("GET", "/pending/" + one.dataset.id);
      if (value.content !== one.dataset.content) throw new Error("It changed since you looked; load the page again.");
      $("textarea", editor).value = value.changes[0].text;
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

  // Noted lines: one, or all on the page in which the scan saw nothing.
  async function review(verb, from, said) {
    const one = from.closest("[data-noted]");
    if (verb === "keep" && one && !typed($("[name=typed]", one))) return;
    const names = one ? [one.dataset.noted] : $$("[data-noted][data-plain]").map((each) => each.dataset.noted);
    try { await send("POST", `/noted/${verb}`, { names }); say(said); } catch (error) { say(error.message); }
    await settle();
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
    async approve(from) {
      const one = card(from), whole = one && $("[data-whole]", one);
      if (whole) { whole.click(); return; }
      const name = one && $("[name=typed]", one);
      if (!typed(name)) return;
      if (one && await decide(one, "approve", { content: one.dataset.content, typed: name && !name.dataset.word ? name.value : "" })) { say("Approved and written."); await settle(); }
    },
    async deny(from) {
      const one = card(from);
      if (one && await decide(one, "deny")) { say("Denied; nothing was written."); await settle(); }
    },
    async edit(from) { await edit(card(from), true); },
    async "edit-end"(from) { await edit(card(from), false); },
    async "approve-edited"(from) {
      const one = card(from);
      const text = $("textarea", one).value, name = $("[name=typed]", one);
      if (!typed(name)) return;
      if (await decide(one, "approve", { content: one.dataset.content, text, typed: name && !name.dataset.word ? name.value : "" })) { say("Approved as you edited it."); await settle(); }
    },
    async "approve-all"(from) { await approveAll(from.dataset.batch); },
    async "deny-all"(from) { await denyAll(from.dataset.batch); },
    async "keep-noted"(from) { await review("keep", from, "Kept. Prompts hold it from now on."); },
    async "drop-noted"(from) { await review("drop", from, "Dropped."); },
    looked(from) {
      for (const one of $$(".card", document.getElementById(from.dataset.batch))) looked.add(face(one));
      mark();
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
    async undo() {
      if (!confirm("Undo the newest change?")) return;
      const { value } = await send("POST", "/undo", {});
      say(value.length ? "Undone: " + value.map((receipt) => receipt.path).join(", ") : "There was nothing to undo.");
    },
  };

  async function act(name, from) {
    try { await acts[name](from); } catch (error) { say(error.message); }
  }

  // -- keys ------------------------------------------------------------------------------------------------------------

  function step(by) {
    const all = $$(".card, [data-step]");
    if (!all.length) return;
    const here = all.findIndex((one) => one === document.activeElement || one.contains(document.activeElement));
    all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + by))].focus();
  }

  // A key decides only about the card that is chosen; the first one chooses.
  function chosen(name) {
    const one = $(".card[data-id]:focus, .card[data-id]:focus-within");
    if (one) act(name, one); else step(1);
  }

  let leading = false;
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
    const from = document.activeElement;
    if (leading) {
      leading = false;
      const page = $(`.rail [data-key="${CSS.escape(event.key)}"]`);
      if (page) { event.preventDefault(); page.click(); }
      return;
    }
    const on = {
      g: () => { leading = true; setTimeout(() => { leading = false; }, 1500); },
      j: () => step(1), k: () => step(-1),
      a: () => chosen("approve"), d: () => chosen("deny"), e: () => { const link = $("a[data-edit]"); if (link) link.click(); else chosen("edit"); },
      u: () => act("undo", from), "?": () => act("keys", from),
      "/": () => { const box = $("[data-search]"); if (box) box.focus(); else if ($('.rail a[href="/search"]')) location.href = "/search"; },
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
    looked = new Set(cards().map(face));
    stood = cards().map(face).join();
    document.addEventListener("refreshed", () => { mark(); moved(); });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (button && acts[button.dataset.act]) { event.preventDefault(); act(button.dataset.act, button); }
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

  window.anima = { ask, blocks, send, part, say, refresh, acts, act };
})();
