/* The two charts of the dashboard. The table below has the same numbers and is shown without scripts. */
import { echarts } from "../vendor/echarts/index.js";

const COLOURS = { success: "#00a65a", failed: "#c23632", running: "#f39c12" };
const box = document.querySelector("[data-charts]");

function words() {
  return { success: box.dataset.success, failed: box.dataset.failed, running: box.dataset.running };
}

function textColour() {
  return getComputedStyle(document.body).color;
}

/* on a phone the legends are below the titles and the pie */
function isNarrow() {
  return box.clientWidth < 600;
}

function lineColour() {
  return getComputedStyle(document.body).getPropertyValue("--box-edge").trim();
}

function line(name, key, days) {
  return {
    name,
    type: "line",
    stack: "total",
    areaStyle: { opacity: 0.55 },
    symbolSize: 5,
    color: COLOURS[key],
    label: { show: key === "failed", position: "top", color: textColour(), formatter: (point) => point.value || "" },
    emphasis: { focus: "series" },
    data: days.map((day, index) => (index ? day[key] : { value: day[key], label: { align: "left" } })),
  };
}

function byDay(days) {
  const name = words();
  const colour = textColour();
  return {
    title: { text: box.dataset.byDay, left: 0, textStyle: { color: colour, fontSize: 15, fontWeight: "normal" } },
    tooltip: { trigger: "axis", renderMode: "richText", axisPointer: { type: "cross" } },
    legend: { textStyle: { color: colour }, ...(isNarrow() ? { top: 38, left: 0 } : { top: 0, right: 44 }) },
    grid: { left: 36, right: 44, bottom: 4, top: isNarrow() ? 86 : 44, containLabel: true },
    xAxis: { type: "category", boundaryGap: false, data: days.map((day) => day.day), axisLabel: { color: colour } },
    yAxis: { type: "value", minInterval: 1, axisLabel: { color: colour }, splitLine: { lineStyle: { color: lineColour() } } },
    series: [line(name.success, "success", days), line(name.failed, "failed", days), line(name.running, "running", days)],
  };
}

function share(days) {
  const name = words();
  const colour = textColour();
  const sum = (key) => days.reduce((total, day) => total + day[key], 0);
  const slice = (key) => ({ name: name[key], value: sum(key), itemStyle: { color: COLOURS[key] } });
  return {
    title: { text: box.dataset.share, left: "center", textStyle: { color: colour, fontSize: 15, fontWeight: "normal" } },
    tooltip: { trigger: "item", renderMode: "richText", formatter: "{b}: {c} ({d}%)" },
    legend: { textStyle: { color: colour }, ...(isNarrow() ? { bottom: 0, left: "center" } : { orient: "vertical", left: 0, top: "middle" }) },
    series: [
      {
        type: "pie",
        stillShowZeroSum: false,
        radius: ["0%", "62%"],
        center: isNarrow() ? ["50%", "50%"] : ["54%", "56%"],
        label: { show: false },
        data: ["success", "failed", "running"].map(slice),
      },
    ],
  };
}

async function start() {
  const answer = await fetch(box.dataset.charts, { headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) return;
  const { days } = await answer.json();
  if (!days.some((day) => day.success + day.failed + day.running)) return;
  box.hidden = false;
  document.querySelector("[data-chart-table]").open = false;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const charts = [
    [box.querySelector("[data-chart=days]"), byDay],
    [box.querySelector("[data-chart=share]"), share],
  ].map(([place, draw]) => [echarts.init(place), draw]);
  const drawAll = () => charts.forEach(([chart, draw]) => chart.setOption({ animation: !calm, ...draw(days) }, true));
  drawAll();
  document.addEventListener("themechange", drawAll);
  new ResizeObserver(() => charts.forEach(([chart]) => chart.resize())).observe(box);
}

if (box) start();
