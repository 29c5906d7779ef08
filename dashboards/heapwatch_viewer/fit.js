// A table that is wider than its panel breaks its cells into lines; if that does not suffice, its rows are cards.
function fit() {
  for (const body of document.querySelectorAll(".panel.table .panel-body")) {
    body.classList.remove("tight", "cards");
    const isWide = () => body.scrollWidth > body.clientWidth;
    if (isWide()) body.classList.add("tight");
    if (isWide()) body.classList.replace("tight", "cards");
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
