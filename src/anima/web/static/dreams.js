// Dreams: a night now. It is asked of the API; the page then draws itself again.
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
  });
})();
