// Search and Sessions: answers while you type, only the newest shown; and what is followed while it goes on.
"use strict";
(() => {
  const DELAY = 140;
  const form = document.querySelector("form[data-instant]");

  function instant() {
    const place = document.querySelector(form.dataset.instant);
    const box = form.querySelector("[data-search]");
    const part = place.dataset.live.match(/part=([a-z]+)/)[1];
    let newest = 0, timer, asking = null;

    function address() {
      const fields = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim() !== ""));
      return `${form.getAttribute("action")}?${fields}`;
    }

    async function look() {
      const mine = ++newest, to = address();
      if (asking) asking.abort();
      asking = new AbortController();
      place.setAttribute("aria-busy", "true");
      try {
        const { ok, drawn: fresh } = await window.anima.part(`${to}&part=${part}`, { signal: asking.signal });
        if (mine !== newest) return;
        if (!ok) { wrong(fresh); return; }
        place.replaceChildren(...fresh.childNodes);
        place.dataset.live = `${to}&part=${part}`;
        history.replaceState(null, "", to);
        for (const time of place.querySelectorAll("time[datetime]")) time.title = new Date(time.dateTime).toLocaleString();
      } catch (error) {
        if (error.name !== "AbortError" && mine === newest) wrong(null);
      } finally {
        if (mine === newest) place.removeAttribute("aria-busy");
      }
    }

    function wrong(fresh) {
      const said = document.createElement("p");
      said.className = "wrong";
      said.setAttribute("role", "alert");
      const from = fresh && fresh.querySelector("main p");
      said.textContent = from ? from.textContent : "The home does not answer; what was found before is gone from here. Try again.";
      place.replaceChildren(said);
    }

    const soon = (wait) => { clearTimeout(timer); timer = setTimeout(look, wait); };
    box.addEventListener("input", () => soon(DELAY));
    form.addEventListener("change", (event) => { if (event.target !== box) soon(0); });
    form.addEventListener("submit", (event) => { event.preventDefault(); soon(0); });
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") {
        const first = place.querySelector("[data-step]");
        if (first) { event.preventDefault(); first.focus(); }
      }
      if (event.key === "Escape" && box.value === "") box.blur();
    });
    if (box.value && box.hasAttribute("autofocus")) box.select();
  }

  // What nobody tells us of is asked for, while somebody looks.
  function follow(element) {
    const wait = Number(element.dataset.poll);
    const again = async () => {
      if (!document.hidden) await window.anima.refresh(element).catch(() => {});
      if (!element.dataset.while || element.querySelector(element.dataset.while)) setTimeout(again, wait);
    };
    setTimeout(again, wait);
  }

  function turn(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
    const rel = { n: "next", p: "prev" }[event.key];
    const link = rel && document.querySelector(`.pager a[rel="${rel}"]`);
    if (link) { event.preventDefault(); link.click(); }
  }

  if (form) instant();
  for (const element of document.querySelectorAll("[data-poll]")) follow(element);
  document.addEventListener("keydown", turn);
})();
