// Tidy: the look that the page does not wait for, and the acts. Each sends the ids of what was shown, and no text.
"use strict";
(() => {
  const { send, say, refresh, acts, items, next, choose, isPhone } = window.anima;
  const $ = (where, from = document) => from.querySelector(where);
  const $$ = (where, from = document) => [...from.querySelectorAll(where)];

  async function look(afresh) {
    const found = $("#found"), live = found.dataset.live;
    found.setAttribute("aria-busy", "true");
    try {
      found.dataset.live = live + (afresh ? "&afresh=1" : "");
      await refresh(found);
    } finally {
      found.dataset.live = live;
      found.removeAttribute("aria-busy");
    }
    const waiting = $("#looking");
    if (waiting) waiting.textContent = "Memory could not be looked at. Load the page again.";
    else await first();
  }

  // On a wide screen something is shown beside the list from the start.
  async function first() {
    const [one] = items();
    if (one && !isPhone() && !$("#detail").dataset.id) await choose(one, { open: false, at: false });
  }

  function told(text) {
    const wrong = $("#tidy-wrong");
    wrong.textContent = text;
    wrong.hidden = !text;
    if (text) { wrong.focus(); wrong.scrollIntoView({ block: "nearest" }); }
  }

  // One act: what was shown, or nothing. Where it no longer stands, the page says so and looks again.
  async function carry(from, ids, wish, done) {
    if (from.ariaBusy === "true") return;
    const rows = items();
    told("");
    from.ariaBusy = "true";  // not disabled: the focus stays where it is
    try {
      const { status, value } = await send("POST", "/tidy", { ids, ...wish });
      say(status === 202 ? "It waits in the inbox for your yes." : done, { undo: value.change || "" });
      await look(false);
      await next(ids[ids.length - 1], rows);
    } catch (error) {
      if (error.problem && error.problem.status === 412) {
        await look(true);
        await next(ids[0], rows);
        told("Memory changed since this was shown, so nothing was done. Below is how it stands now.");
      } else told(error.message);
    } finally { from.ariaBusy = "false"; }
  }

  const card = (from) => from.closest(".card.tidy");
  const tidy = (from) => {
    const one = card(from), line = from.dataset.line ? { line: Number(from.dataset.line) } : {};
    if (!from.dataset.line && $("[data-line]", one)) { say("Say which of the two lines holds."); return undefined; }
    return carry(from, [one.dataset.id], { do: "tidy", ...line }, "Done.");
  };
  const keep = (from) => {
    const one = card(from);
    if (!$("[data-act=tidy-keep]", one)) { say("A log stays where it is until you move it."); return undefined; }
    return carry(from, [one.dataset.id], { do: "keep" }, "Kept. It is not brought up again.");
  };

  Object.assign(acts, {
    tidy, "tidy-keep": keep, approve: tidy, deny: keep, edit() {},  // the keys a and d, on the one that is chosen
    "tidy-all"(from) {
      const ids = $$(`#items-${from.dataset.part} .entry`).map((one) => one.dataset.id);
      return carry(from, ids, { do: "tidy" }, `Done, all ${from.dataset.count} as one change.`);
    },
    "look-again"() { return look(true); },
    "more-rows"() { $("#found").dataset.live += "&all=1"; return look(false); },
  });

  document.addEventListener("DOMContentLoaded", () => { ($("#looking") ? look(false) : first()).catch((error) => say(error.message)); });
})();
