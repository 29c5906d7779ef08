import { echarts } from "nicegui-echart";
import { ticks } from "heapwatch-browser/axis.js";
import { write, writeTick } from "heapwatch-browser/units.js";

const CROSSHAIR = "heapwatch-crosshair";
const LEAST_DRAG = 6; // pixels; less is a click
const MOST_NAME = 0.35; // of the chart's width, for the names of lanes
const LANE_SHARE = 0.8; // of a lane's height, for its blocks
const LEAST_LANE = 13; // pixels; a lower lane has no room for the name of its state
const HALF_A_TIME = 18; // pixels; a tick at the very end writes half of its time beyond the axis
const AHEAD = "300px"; // charts this far outside of the window are drawn already

function escape(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element.innerHTML;
}

function paintOf(name) {
  return getComputedStyle(document.body).getPropertyValue(name).trim();
}

// A block from one time to another in the lane of a category axis, as state timelines draw them.
function drawBlock(params, api, text) {
  const [lane, from, to] = [0, 1, 2].map((place) => api.value(place));
  const start = api.coord([from, lane]);
  const end = api.coord([to, lane]);
  const height = Math.max(api.size([0, 1])[1] * LANE_SHARE, 1);
  const shape = echarts.graphic.clipRectByRect(
    { x: start[0], y: start[1] - height / 2, width: Math.max(end[0] - start[0], 1), height },
    { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height },
  );
  if (!shape) return null;
  const rectangle = { type: "rect", shape, style: { fill: api.visual("color") } };
  if (height >= LEAST_LANE && shape.width > 7 * text.length + 8) {
    rectangle.textContent = { type: "text", style: { text, fill: "#111", fontSize: 11 } };
    rectangle.textConfig = { position: "inside" };
  }
  return rectangle;
}

// ECharts' own bars would widen the time axis, in each chart by another amount.
function barsOf(series, all) {
  const below = all.slice(0, all.indexOf(series)).filter((other) => other.stack && other.stack === series.stack);
  const base = (place) => below.reduce((sum, other) => sum + (other.data[place]?.[1] ?? 0), 0);
  return {
    ...series,
    type: "custom",
    stack: undefined,
    data: series.data.map(([time, value], place) => [time, value, base(place)]),
    encode: { x: 0, y: 1 },
    renderItem: (params, api) => {
      const [x, bottom] = api.coord([api.value(0), api.value(2)]);
      const top = api.coord([api.value(0), api.value(2) + api.value(1)])[1];
      if (!(bottom > top)) return null;
      const shape = { x: x - series.barWidth / 2, y: top, width: series.barWidth, height: bottom - top };
      return { type: "rect", shape, style: { fill: api.visual("color") } };
    },
  };
}

function seriesOf(series, all) {
  if (series.type === "bar") return barsOf(series, all);
  if (series.name === "states" && series.type === "custom")
    return {
      ...series,
      encode: { x: [1, 2], y: 0 },
      renderItem: (params, api) => drawBlock(params, api, series.data[params.dataIndex].name),
    };
  return series;
}

function tooltipOf(unit) {
  return (items) => {
    const list = Array.isArray(items) ? items : [items];
    if (!list.length) return "";
    const first = list[0];
    if (first.seriesName === "states") {
      const [, from, to] = first.value;
      return `${escape(first.name)}<br>${new Date(from).toLocaleString()} – ${new Date(to).toLocaleTimeString()}`;
    }
    const rows = list
      .filter((item) => item.value[1] !== null && item.value[1] !== undefined)
      .sort((a, b) => b.value[1] - a.value[1])
      .slice(0, 20)
      .map(
        (item) =>
          `<tr><td>${item.marker}${escape(item.seriesName)}</td><td class="tip-value">${escape(write(item.value[1], unit))}</td></tr>`,
      );
    return `<div class="tip-time">${new Date(first.axisValue).toLocaleString()}</div><table>${rows.join("")}</table>`;
  };
}

// The width that the names of lanes need, in pixels, up to a share of the chart.
function nameWidth(names, width) {
  const measured = names.map((name) => echarts.format.getTextRect(name, "11px sans-serif").width);
  return Math.ceil(Math.min(Math.max(...measured, 0) + 4, width * MOST_NAME));
}

// An axis of a given width makes the times of charts below each other agree.
function gridOf(axis) {
  if (!axis.width) return { left: 8, right: HALF_A_TIME, top: 10, bottom: 4, containLabel: true };
  return { left: axis.width, right: HALF_A_TIME, top: 10, bottom: 24 };
}

function complete(chart, width) {
  const text = paintOf("--muted");
  const line = paintOf("--line");
  const categories = chart.options.yAxis[0].type === "category";
  return {
    animation: false,
    useUTC: false,
    textStyle: { fontFamily: "inherit" },
    grid: gridOf(chart.options.yAxis[0]),
    legend: { show: false },
    tooltip: {
      trigger: categories ? "item" : "axis",
      confine: true,
      axisPointer: { type: "line", lineStyle: { color: text, width: 1 } },
      backgroundColor: paintOf("--panel"),
      borderColor: line,
      textStyle: { color: paintOf("--text"), fontSize: 12 },
      formatter: tooltipOf(chart.unit),
    },
    xAxis: {
      ...chart.options.xAxis,
      axisLine: { lineStyle: { color: line } },
      axisLabel: { color: text, hideOverlap: true, fontSize: 11 },
      splitLine: { show: !categories, lineStyle: { color: line, opacity: 0.5 } },
      splitNumber: 6,
    },
    yAxis: chart.options.yAxis.map((axis) => ({
      ...axis,
      ...(axis.type === "value" ? ticks(chart.options.series, axis, chart.unit) : {}),
      triggerEvent: categories,
      axisLine: { show: false },
      axisTick: { show: false },
      splitNumber: 4,
      splitLine: { show: !categories, lineStyle: { color: line, opacity: 0.5 } },
      axisLabel: categories
        ? { color: text, fontSize: 11, width: nameWidth(axis.data, width), overflow: "truncate" }
        : { color: text, fontSize: 11, formatter: (value) => writeTick(value, chart.unit) },
    })),
    series: chart.options.series.map((series, _, all) => ({
      ...seriesOf(series, all),
      emphasis: { disabled: true },
      markLine: series.markLine && {
        ...series.markLine,
        z: 1,
        symbol: "none",
        label: { show: false },
        lineStyle: { type: "dashed", width: 1, opacity: 0.75 },
        tooltip: { trigger: "item", formatter: (mark) => escape(mark.name) },
      },
    })),
  };
}

export default {
  props: { chart: Object },
  emits: ["zoom"],
  template: `
    <div class="chart">
      <div class="drawing">
        <div class="plot" ref="plot"></div>
        <div class="crosshair" ref="crosshair"></div>
        <div class="selection" ref="selection"></div>
      </div>
      <div class="legend" ref="legend" v-if="chart && chart.legend" v-html="chart.legend" @click="isolate"></div>
    </div>`,
  mounted() {
    // A busy browser reports several changes at once; the last one holds.
    this.sight = new IntersectionObserver((changes) => this.see(changes.at(-1).isIntersecting), { rootMargin: AHEAD });
    this.sight.observe(this.$el);
    this.follow = (event) => this.placeCrosshair(event.detail);
    window.addEventListener(CROSSHAIR, this.follow);
  },
  beforeUnmount() {
    window.removeEventListener(CROSSHAIR, this.follow);
    this.sight.disconnect();
    this.resizes?.disconnect();
    this.echart?.dispose();
  },
  watch: {
    chart() {
      this.$nextTick(this.change);
    },
  },
  methods: {
    see(seen) {
      this.seen = seen;
      if (seen && this.stale !== false) this.draw();
    },
    change() {
      this.stale = true;
      if (this.seen) this.draw();
    },
    draw() {
      if (!this.chart) return;
      if (!this.echart) this.prepare();
      this.echart.setOption(complete(this.chart, this.$refs.plot.clientWidth), { notMerge: true });
      this.stale = false;
      if (this.isolated) this.select();
    },
    prepare() {
      const plot = this.$refs.plot;
      this.echart = echarts.init(plot, null, { renderer: "canvas" });
      this.resizes = new ResizeObserver(() => this.echart.resize());
      this.resizes.observe(plot);
      const canvas = this.echart.getZr();
      canvas.on("mousemove", this.move);
      canvas.on("globalout", () => window.dispatchEvent(new CustomEvent(CROSSHAIR, { detail: null })));
      canvas.on("mousedown", (event) => (this.dragged = this.inside(event) ? event.offsetX : null));
      canvas.on("mouseup", this.release);
      this.echart.on("mouseover", { componentType: "yAxis" }, (label) => (plot.title = label.value));
      this.echart.on("mouseout", { componentType: "yAxis" }, () => (plot.title = ""));
    },
    inside(event) {
      return this.echart.containPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]);
    },
    timeAt(x) {
      return this.echart.convertFromPixel({ xAxisIndex: 0 }, x);
    },
    move(event) {
      if (!this.chart) return;
      if (this.dragged != null) {
        const selection = this.$refs.selection.style;
        selection.display = "block";
        selection.left = `${Math.min(this.dragged, event.offsetX)}px`;
        selection.width = `${Math.abs(event.offsetX - this.dragged)}px`;
        selection.height = `${this.$refs.plot.clientHeight}px`;
      }
      const detail = this.inside(event) ? { time: this.timeAt(event.offsetX), origin: this } : null;
      window.dispatchEvent(new CustomEvent(CROSSHAIR, { detail }));
    },
    release(event) {
      const start = this.dragged;
      this.dragged = null;
      this.$refs.selection.style.display = "none";
      if (start == null || Math.abs(event.offsetX - start) < LEAST_DRAG) return;
      const ends = [this.timeAt(start), this.timeAt(event.offsetX)].sort((a, b) => a - b);
      this.$emit("zoom", { from: Math.round(ends[0]), to: Math.round(ends[1]) });
    },
    placeCrosshair(detail) {
      const style = this.$refs.crosshair.style;
      style.display = "none";
      if (!detail || detail.origin === this || !this.echart || !this.seen) return;
      const x = this.echart.convertToPixel({ xAxisIndex: 0 }, detail.time);
      if (!this.echart.containPixel({ gridIndex: 0 }, [x, this.$refs.plot.clientHeight / 2])) return;
      style.display = "block";
      style.left = `${x}px`;
      style.height = `${this.$refs.plot.clientHeight}px`;
    },
    isolate(event) {
      const row = event.target.closest("tr[data-series]");
      if (!row) return;
      const name = row.dataset.series;
      this.isolated = this.isolated === name ? null : name;
      this.select();
    },
    select() {
      for (const series of this.chart.options.series) {
        const shown = !this.isolated || series.name === this.isolated;
        this.echart.dispatchAction({ type: shown ? "legendSelect" : "legendUnSelect", name: series.name });
      }
      for (const other of this.$refs.legend.querySelectorAll("tr[data-series]"))
        other.classList.toggle("off", Boolean(this.isolated) && other.dataset.series !== this.isolated);
    },
  },
};
