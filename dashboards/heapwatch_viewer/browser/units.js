// Numbers with their units, as units.py writes them.

// The number in the step of its unit that suits it, and that step's suffix.
function scale(value, unit) {
  const scaled = value * unit.multiply;
  let [factor, suffix] = unit.steps[0];
  for (const [step, text] of unit.steps)
    if (Math.abs(scaled) >= step || (scaled === 0 && step <= 1)) [factor, suffix] = [step, text];
  return [scaled / factor, suffix];
}

// Mirrors units.write in Python: the unit comes from there as data.
export function write(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!unit) return String(Number(value.toPrecision(4)));
  const [number, suffix] = scale(value, unit);
  let decimals = number === 0 ? 0 : unit.decimals;
  if (decimals === null) decimals = Number.isInteger(number) ? 0 : Math.abs(number) < 10 ? 2 : Math.abs(number) < 100 ? 1 : 0;
  return number.toFixed(decimals) + suffix;
}

// Axis labels need no more decimals than tell them apart.
export function writeTick(value, unit) {
  const [number, suffix] = scale(value, unit);
  return Number(number.toPrecision(3)) + suffix;
}
