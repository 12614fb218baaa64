// All that a cookie gets: asks for the same address once more, with the key that only this origin can read, and writes the
// answer where it stands. It waits for it, so that to the browser this is one page that loads: its place, focus and fragment.
"use strict";
(() => {
  const name = document.currentScript.dataset.cookie;
  const key = localStorage.getItem(name);
  if (!key) { location.replace("/login"); return; }
  const asked = new XMLHttpRequest();
  asked.open("GET", location.href.split("#")[0], false);
  asked.setRequestHeader("X-Anima-Key", key);
  try { asked.send(); } catch { document.write("<p>The home does not answer. Is <code>anima up</code> running?</p>"); return; }
  if (asked.status === 401) { localStorage.removeItem(name); location.replace("/login"); return; }
  if (!(asked.getResponseHeader("Content-Type") || "").startsWith("text/html")) { document.write("<p>This is no page.</p>"); return; }
  history.replaceState(history.state, "", asked.responseURL + location.hash);
  document.write(asked.responseText);
})();
