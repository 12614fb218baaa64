// Memory: choosing lines, editing with what changes shown first, two versions put side by side, taking back.
"use strict";
(() => {
  const { send, part, say, acts, sheet, isPhone } = window.anima;
  const $ = (where, from = document) => from.querySelector(where);
  const $$ = (where, from = document) => [...from.querySelectorAll(where)];
  const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

  function wrong(from, text) {
    const box = $(".wrong[role=alert]", from);
    if (!box) { if (text) say(text); return; }
    box.textContent = text;
    box.hidden = !text;
  }

  // -- browsing --------------------------------------------------------------------------------------------------------

  function filter(text) {
    const wanted = text.trim().toLowerCase();
    let shown = 0;
    for (const leaf of $$("#tree .leaf")) {
      leaf.hidden = wanted !== "" && !leaf.dataset.name.includes(wanted);
      shown += leaf.hidden ? 0 : 1;
    }
    for (const folder of $$("#tree .folder")) {
      folder.hidden = wanted !== "" && !$(".leaf:not([hidden])", folder);
      if (wanted && !folder.hidden) folder.open = true;
    }
    $("#none-fits").hidden = wanted === "" || shown > 0;
  }

  // A part that is drawn anew forgets which folders a person opened; we do not.
  function keepFolders(tree, box) {
    const told = new Map();
    tree.addEventListener("click", (event) => {
      const folder = event.target.closest("summary") && event.target.closest("details");
      if (folder) told.set(folder.id, !folder.open);
    });
    new MutationObserver(() => {
      for (const [id, open] of told) { const folder = document.getElementById(id); if (folder) folder.open = open; }
      if (box.value) filter(box.value);
    }).observe(tree, { childList: true, subtree: true });
  }

  async function write(form) {
    const verb = form.dataset.write;
    const body = Object.fromEntries([...new FormData(form)].filter(([, value]) => value.trim() !== ""));
    wrong(form, "");
    try {
      const { value } = await send("POST", "/" + verb, body);
      form.reset();
      const step = form.closest("[data-busy]");
      if (step) step.removeAttribute("data-busy");
      const settled = value.noted && value.noted.length ? " A noted line that said the same waits no longer." : "";
      if (["known", "unchanged"].includes(value.status)) say("It stands there already." + settled);
      else kept(verb === "note" ? "Noted" : "Remembered", value, body.fact || body.content, settled);
    } catch (error) { wrong(form, error.message); }
  }

  // What the scan saw in a line that is written all the same, as its owner wrote it.
  function warned({ findings = [] }) {
    const seen = [...new Set(findings.map((found) => found.message))].join(", ");
    const isSecret = findings.some((found) => found.kind.startsWith("secret:"));
    return (seen && ` · The scan saw: ${seen}.`) + (isSecret ? " Undo takes it out; history keeps it until anima forget --purge." : "");
  }

  // Says where a line went. Where the home was not sure, one tap takes it to another heading.
  function kept(done, receipt, line, settled = "") {
    const others = (receipt.likely || []).slice(0, 3).map((section) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: section, title: `Put it under ${section}` });
      button.addEventListener("click", async () => {
        let isGone = false;
        try {
          await send("POST", "/undo", { change: receipt.change });
          isGone = true;
          kept("Remembered", (await send("POST", "/remember", { fact: line, section })).value, line);
        } catch (error) { say(isGone ? `Not kept: ${line} · ${error.message}` : error.message); }
      }, { once: true });
      return button;
    });
    const place = receipt.section ? `${receipt.path} under ${receipt.section}` : receipt.path;
    const after = warned(receipt) + settled + (others.length ? " · Not sure. Better under:" : "");
    say(`${done} in ${place}: ${line}`.slice(0, 160), { after, undo: receipt.change || "", others });
  }

  // -- lines -----------------------------------------------------------------------------------------------------------

  async function choose(lines, number, focus) {
    const { address, way } = lines.dataset;
    const where = `${address}?as=${way}${number ? "&line=" + number : ""}`;
    const { ok, drawn: about } = await part(where + "&part=about");
    if (!ok) { location.href = where; return; }
    $("#about").replaceChildren(...about.children);
    for (const row of $$(".row.chosen", lines)) { row.classList.remove("chosen"); $(".mark", row).removeAttribute("aria-current"); }
    for (const mark of $$("a.mark[tabindex='0']", lines)) mark.tabIndex = -1;
    const row = number && document.getElementById("L" + number);
    const mark = row ? $("a.mark", row) : $("a.mark", lines);
    if (row) { row.classList.add("chosen"); mark.setAttribute("aria-current", "true"); }
    if (mark) mark.tabIndex = 0;
    const from = new URLSearchParams(lines.dataset.live.split("?")[1]).get("from") || "1";
    lines.dataset.live = `${address}?as=${way}&part=lines&from=${from}${number ? "&line=" + number : ""}`;
    history.replaceState(null, "", `${where}${number ? "#L" + number : ""}`);
    if (!focus) { sheet(false); if (mark) mark.focus(); return; }
    const title = $("#why-title");
    if (title && isPhone()) sheet(true);
    else if (title && matchMedia("(max-width: 60rem)").matches) { title.focus(); title.scrollIntoView({ block: "start" }); }
  }

  // -- diffs, drawn as text and nothing else ---------------------------------------------------------------------------

  function inert(cell, text) {
    for (const piece of text.split(/([\p{C}\p{Z}])/u)) {
      if (!piece) continue;
      if (piece === " " || piece === "\t" || !/^[\p{C}\p{Z}]$/u.test(piece)) { cell.append(piece); continue; }
      const odd = document.createElement("span");
      odd.className = "odd";
      odd.title = "a character that is not seen";
      odd.textContent = `⟨U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
      cell.append(odd);
    }
    return cell;
  }

  function drawn(lines) {
    const box = Object.assign(document.createElement("div"), { className: "diff", tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "What changes");
    const table = box.appendChild(document.createElement("table"));
    for (const line of lines) {
      const row = table.insertRow();
      row.className = line.kind;
      if (line.kind === "place" || line.kind === "note") {
        inert(row.insertCell(), line.text).colSpan = 4;
        continue;
      }
      for (const number of [line.old, line.new]) Object.assign(row.insertCell(), { className: "n", textContent: number ?? "" });
      const sign = Object.assign(row.insertCell(), { className: "s" });
      if (line.kind !== "same") {
        const shown = sign.appendChild(document.createElement("span"));
        shown.textContent = line.kind === "add" ? "+" : "−";
        shown.setAttribute("aria-label", line.kind === "add" ? "added" : "taken away");
      }
      inert(Object.assign(row.insertCell(), { className: "t" }), line.text);
    }
    return box;
  }

  function showDiff(place, lines, nothing) {
    const said = Object.assign(document.createElement("p"), { className: "dim", textContent: nothing });
    place.replaceChildren(lines.length ? drawn(lines) : said);
  }

  // -- editing ---------------------------------------------------------------------------------------------------------

  function editor(form) {
    const box = $("#text", form), place = form.dataset.place, file = "/files/" + encoded(place);
    const held = { text: "", tag: null, crlf: false, theirs: null, merged: null, left: false };  // what we edit from; the tag is null while there is none

    const plain = (text) => text.replace(/\r\n?/g, "\n");
    const mine = () => held.crlf ? box.value.replace(/\n/g, "\r\n") : box.value;
    const changed = () => box.value !== plain(held.text);

    function take(text, tag) {
      held.text = text;
      held.tag = tag;
      held.crlf = text.includes("\r\n") && text.split("\r\n").length === text.split(/\r\n|\r|\n/).length;
    }

    function leave() {
      take(mine(), null);
      held.left = true;
    }

    async function standing() {
      try {
        const { value, etag } = await send("GET", file);
        return { text: value.text, tag: etag };
      } catch (error) {
        if (error.problem && error.problem.status === 404) return { text: "", tag: null };
        throw error;
      }
    }

    async function open() {
      const now = form.hasAttribute("data-new") ? { text: "", tag: null } : await standing();
      take(now.text, now.tag);
      box.value = now.text;
      for (const part of [box, $("#save"), $("#preview")]) part.disabled = false;
      box.focus();
      box.setSelectionRange(0, 0);
    }

    async function preview() {
      const { value } = await send("POST", "/compare", { before: held.text, after: mine() });
      showDiff($("#changes"), value.lines, "Nothing changes.");
    }

    async function save() {
      wrong(form, "");
      if (!changed() && held.tag) { say("Nothing changed, so nothing was written."); return; }
      const headers = held.tag ? { "If-Match": held.tag } : { "If-None-Match": "*" };
      $("#save").disabled = held.left = true;  // the news of it may come before its answer
      try {
        const { status } = await send("PUT", file, { text: mine(), reason: $("#reason").value }, headers);
        leave();
        location.href = status === 202 ? "/inbox" : form.dataset.address;
      } catch (error) {
        held.left = false;
        if (error.problem && error.problem.status === 412) await conflict(); else wrong(form, error.message);
      } finally { $("#save").disabled = false; }
    }

    async function conflict() {
      const theirs = held.theirs = await standing();
      const [changes, ours] = await Promise.all([
        send("POST", "/compare", { before: held.text, after: theirs.text }),
        send("POST", "/compare", { before: theirs.text, after: mine(), base: held.text }),
      ]);
      showDiff($("#their-diff"), changes.value.lines, "Nothing of the text.");
      showDiff($("#our-diff"), ours.value.lines, "Nothing: yours is the same as theirs.");
      held.merged = ours.value.merged;
      $("#both").hidden = held.merged === null;
      $("#no-merge").hidden = held.merged !== null;
      $("#conflict").hidden = false;
      $("#moved").hidden = true;
      $("#changes").replaceChildren();
      $("#conflict-title").focus();
    }

    async function goOn(text) {
      if (!held.theirs) return;
      take(held.theirs.text, held.theirs.tag);
      box.value = text;
      held.theirs = null;
      $("#conflict").hidden = true;
      await preview();
      box.focus();
      say("Look at what changes, then save.");
    }

    Object.assign(acts, {
      preview,
      both: () => goOn(held.merged),
      mine: () => goOn(box.value),
      theirs: () => goOn(held.theirs ? held.theirs.text : box.value),
      async "delete-document"() {
        if (!confirm(`Delete ${place}? Its history stays, and can bring it back.`)) return;
        wrong(form, "");
        held.left = true;  // the news of it may come before its answer
        try {
          await send("DELETE", file, undefined, { "If-Match": held.tag });
          leave();
          location.href = form.dataset.address + "?as=history";
        } catch (error) {
          held.left = false;
          if (error.problem && error.problem.status === 412) await conflict(); else wrong(form, error.message);
        }
      },
    });
    form.addEventListener("submit", (event) => { event.preventDefault(); save(); });
    form.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); save(); }
    });
    addEventListener("beforeunload", (event) => { if (!box.disabled && changed()) event.preventDefault(); });
    const touched = async () => {
      if (box.disabled || held.left || held.tag === null || !$("#conflict").hidden) return;
      const now = await standing();
      $("#moved").hidden = now.tag === held.tag;
    };
    for (const kind of ["change", "files", "resync"]) document.addEventListener("anima:" + kind, () => touched().catch(() => {}));
    open().catch((error) => wrong(form, error.message));
  }

  // -- taking back -----------------------------------------------------------------------------------------------------

  const tried = (task) => async (from) => {
    const around = from.closest(".card, #why") || document;
    wrong(around, "");
    from.disabled = true;
    try { await task(from); } catch (error) { wrong(around, error.message); } finally { from.disabled = false; }
  };

  Object.assign(acts, {
    "undo-change": tried(async (from) => {
      const { value } = await send("POST", "/undo", { change: from.dataset.change, content: from.dataset.content });
      const first = value[0];
      location.href = first ? "/memory/" + encoded(first.path) + "?as=history" : "/memory";
    }),
    restore: tried(async (from) => {
      await send("POST", "/restore", { path: from.dataset.place, at: from.dataset.at, base: from.dataset.base });
      location.href = from.dataset.address;
    }),
    // The line's own text comes only now, and only into the box.
    correct: tried(async () => {
      const form = $("#correcting"), line = Number($("#why").dataset.line);
      const { value } = await send("GET", `/why?path=${encodeURIComponent(form.dataset.place)}&line=${line}`);
      form.old = value.text;
      $("#corrected").value = value.text;
      form.hidden = false;
      $("#corrected").focus();
    }),
    // What was noted goes where it was meant for, and is shown there.
    "trust-line": tried(async (from) => {
      await send("POST", "/noted/keep", { names: [from.dataset.id] });
      location.href = "/memory/" + encoded(from.dataset.to);
    }),
    // What goes is told first; the yes is a second button.
    "forget-line": tried(async () => {
      const place = $("#forgetting"), wish = { line: place.dataset.line, purge: false };
      const { value } = await send("POST", "/forget", { ...wish, dry_run: true });
      const places = Object.values(value.counts).reduce((sum, one) => sum + one, 0) || 1;
      const said = Object.assign(document.createElement("p"), { textContent: `It goes from ${places === 1 ? "one place" : places + " places"}, is found no more, and no dream or import brings it back. History keeps it; anima forget --purge takes it out of there too.` });
      const go = Object.assign(document.createElement("button"), { type: "button", textContent: "Forget it", className: "alarm" });
      go.addEventListener("click", async () => {
        try { await send("POST", "/forget", { ...wish, dry_run: false }); say("Forgotten."); choose($("#lines"), "", false); } catch (error) { say(error.message); }
      });
      place.replaceChildren(said, go);
      place.hidden = false;
      go.focus();
    }),
    unchoose() { const lines = $("#lines"); if (lines) return choose(lines, "", false); return undefined; },
  });

  async function correct(form) {
    const text = $("#corrected").value.replace(/[\r\n]+/g, " ");
    const { value } = await send("POST", "/edit", { path: form.dataset.place, old: form.old, new: text });
    say(`Corrected in ${value.path}: ${text.slice(0, 120)}`, { undo: value.change || "" });
    sheet(false);
    await choose($("#lines"), $("#why").dataset.line, false);
  }

  // -- `[[` completes from the names the home speaks of ------------------------------------------------------------------------

  function completes(box) {
    const list = Object.assign(document.createElement("ul"), { id: "names-offered", className: "offered", hidden: true });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Names");
    box.after(list);
    let names = null;
    const open = () => box.value.slice(0, box.selectionStart).match(/\[\[([^\[\]\n]{0,40})$/);
    function put(name) {
      const found = open(), at = box.selectionStart;
      if (found) box.setRangeText(name + "]]", at - found[1].length, at, "end");
      list.hidden = true;
      box.focus();
    }
    async function offer() {
      if (open() && !names) names = [...(await part("/graph?part=names")).drawn.querySelectorAll(".label")].map((one) => one.textContent);
      const found = open();  // what is typed by now
      if (!found) { list.hidden = true; return; }
      const fit = names.filter((name) => name.toLowerCase().includes(found[1].toLowerCase())).slice(0, 8);
      list.replaceChildren(...fit.map((name, n) => {
        const one = Object.assign(document.createElement("li"), { textContent: name, id: `offered-${n}` });
        one.setAttribute("role", "option");
        one.setAttribute("aria-selected", String(n === 0));
        one.addEventListener("mousedown", (event) => { event.preventDefault(); put(name); });
        return one;
      }));
      list.hidden = fit.length === 0;
    }
    box.addEventListener("input", () => { offer().catch(() => {}); });
    box.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      const all = [...list.children], at = all.findIndex((one) => one.ariaSelected === "true");
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) { event.preventDefault(); all[at].ariaSelected = "false"; all[(at + by + all.length) % all.length].ariaSelected = "true"; }
      if ((event.key === "Enter" && !event.ctrlKey) || event.key === "Tab") { event.preventDefault(); put(all[at].textContent); }
      if (event.key === "Escape") { event.preventDefault(); list.hidden = true; }
    });
    box.addEventListener("blur", () => { list.hidden = true; });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const lines = $("#lines"), form = $("#editing"), box = $("#filter"), tree = $("#tree");
    if (box && tree) { box.addEventListener("input", () => filter(box.value)); keepFolders(tree, box); }
    document.addEventListener("submit", (event) => {
      const one = event.target.closest("form[data-write]");
      if (one) { event.preventDefault(); write(one); }
    });
    if (form) { editor(form); completes($("#text", form)); }
    document.addEventListener("submit", (event) => {
      if (event.target.id !== "correcting") return;
      event.preventDefault();
      correct(event.target).catch((error) => wrong($("#why"), error.message));
    });
    if (lines && isPhone() && $("#why")) sheet(true);
    if (lines) lines.addEventListener("click", (event) => {
      const mark = event.target.closest("a.mark");
      if (!mark || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(lines, mark.dataset.line, true).catch((error) => say(error.message));
    });
  });
})();
