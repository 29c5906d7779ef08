// Ticks of a value axis at round numbers of the unit that the labels are written in: 15 min, 6 h, 50 MB.

const TICKS = 5;
const ROUND = { 1: [1, 2, 5, 10, 15, 30], 60: [1, 2, 5, 10, 15, 30], 3600: [1, 2, 3, 6, 12] };

function decade(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value * 0.999);
}

// The smallest round step of the unit that is at least `least`.
function roundStep(least, unit) {
  const factors = unit.steps.map(([factor]) => factor);
  const place = Math.max(factors.findLastIndex((factor) => factor <= least), 0);
  const [factor, next] = [factors[place], factors[place + 1]];
  const choices = factors.includes(60) && ROUND[factor];
  const step = choices ? choices.find((choice) => choice * factor >= least) : decade(least / factor);
  return step === undefined || (next && step * factor > next) ? next : step * factor;
}

// Lowest and highest value, stacks added up.
function extent(series) {
  const stacks = {};
  let [low, high, whole] = [Infinity, -Infinity, true];
  for (const line of series) {
    const sums = line.stack && (stacks[line.stack] ??= []);
    line.data.forEach(([, value], place) => {
      if (value === null || !Number.isFinite(value)) return;
      whole &&= Number.isInteger(value);
      if (sums) value = sums[place] = (sums[place] ?? 0) + value;
      low = Math.min(low, value);
      high = Math.max(high, value);
    });
  }
  return { low, high, whole };
}

// `min`, `max` and `interval` of a linear axis.
export function ticks(series, axis, unit) {
  let { low, high, whole } = extent(series);
  if (low > high) return {};
  low = Math.min(low, axis.softMin ?? low);
  high = Math.max(high, axis.softMax ?? high);
  const span = high - low || Math.abs(high) || 1;
  let interval = roundStep((span * unit.multiply) / TICKS, unit) / unit.multiply;
  if (whole && unit.multiply === 1) interval = Math.max(interval, 1);
  return {
    interval,
    min: Math.floor(low / interval) * interval,
    max: Math.max(Math.ceil(high / interval), Math.floor(low / interval) + 1) * interval,
  };
}
