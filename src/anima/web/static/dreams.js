// Dreams: a night now, and the last one taken back. Both are asked of the API; the page then draws itself again.
"use strict";
(() => {
  const { send, say, refresh, acts } = window.anima;
  const lines = (number) => `${number} line${number === 1 ? "" : "s"}`;

  function told(value) {
    const waiting = value.proposals.length ? ` ${value.proposals.length} changes of your own lines wait in the inbox.` : "";
    if (value.status === "dreamed") return `A night went by: ${lines(value.promoted.length)} kept of ${value.considered} considered.` + waiting;
    if (value.status === "nothing") return "Nothing was written: " + value.said + ".";
    return (value.said || "The night is " + value.status) + "." + waiting;
  }

  Object.assign(acts, {
    async "dream-now"(from) {
      if (from.ariaBusy === "true") return;
      from.ariaBusy = "true";  // not disabled: the focus stays where it is
      try {
        const { value } = await send("POST", "/dream", { dry_run: false });
        say(told(value));
        await Promise.all([...document.querySelectorAll("#night, #figures")].map(refresh));
      } finally { from.ariaBusy = "false"; }
    },
    // Exactly the night that was shown, and no other one that came in between.
    async "undo-night"(from) {
      const card = from.closest(".card"), wrong = card.querySelector(".wrong[role=alert]");
      wrong.hidden = true;
      from.disabled = true;
      try {
        await send("POST", "/undo", { change: from.dataset.change, content: from.dataset.content });
        location.href = "/dreams";
      } catch (error) {
        wrong.textContent = error.message;
        wrong.hidden = false;
        from.disabled = false;
      }
    },
  });
})();
