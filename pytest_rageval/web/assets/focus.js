// Keeps the focus where a part of a page is replaced. A part says by data-focus what gets it where what had it is gone:
// otherwise whoever works by keys would begin at the top of the page again.
(() => {
  "use strict";
  let part = null; // id of the part that has the focus while it is replaced

  document.addEventListener("htmx:before:swap", () => {
    part = document.activeElement?.closest("[data-focus]")?.id || null;
  });
  document.addEventListener("htmx:finally:swap", () => {
    const isLost = !document.activeElement || document.activeElement === document.body;
    const after = part && document.getElementById(part);
    if (isLost && after) (after.querySelector(after.dataset.focus) || document.getElementById("main")).focus();
    part = null;
  });
})();
