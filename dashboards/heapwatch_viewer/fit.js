// Where a table is wider than its panel, its rows are shown as cards.
function fit() {
  for (const body of document.querySelectorAll(".panel.table .panel-body")) {
    body.classList.remove("cards");
    body.classList.toggle("cards", body.scrollWidth > body.clientWidth);
  }
}

let asked = 0;
function fitSoon() {
  cancelAnimationFrame(asked);
  asked = requestAnimationFrame(fit);
}

addEventListener("resize", fitSoon);
addEventListener("DOMContentLoaded", () => {
  new MutationObserver(fitSoon).observe(document.body, { childList: true, subtree: true });
});
