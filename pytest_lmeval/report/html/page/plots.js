// Plots are drawings beside their numbers: a reader who cannot see them loses nothing.

const PLOT_HEIGHT = 26;

function at(value) {
  return `${(100 * Math.min(1, Math.max(0, value))).toFixed(2)}%`;
}

// One row of the plot of scores: the interval as a line, the score as a dot, floor and baseline as marks.
function scorePlot(score, interval, floor, before) {
  const middle = PLOT_HEIGHT / 2;
  const parts = [0, 0.25, 0.5, 0.75, 1].map((value) =>
    svg("line", { class: "grid", x1: at(value), x2: at(value), y1: 0, y2: PLOT_HEIGHT }),
  );
  if (typeof floor === "number") parts.push(svg("line", { class: "floor", x1: at(floor), x2: at(floor), y1: 4, y2: 22 }));
  if (interval) {
    const [low, high] = interval;
    parts.push(svg("line", { class: "interval", x1: at(low), x2: at(high), y1: middle, y2: middle }));
    for (const end of interval) parts.push(svg("line", { class: "interval end", x1: at(end), x2: at(end), y1: 9, y2: 17 }));
  }
  if (typeof before === "number") {
    const diamond = svg("path", { class: "before", d: "M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z" });
    parts.push(svg("svg", { x: at(before), y: middle, overflow: "visible" }, diamond));
  }
  if (typeof score === "number") parts.push(svg("circle", { class: "score", cx: at(score), cy: middle, r: 4.5 }));
  return svg("svg", { class: "plot", height: PLOT_HEIGHT, "aria-hidden": "true", focusable: "false" }, parts);
}

function scoreAxis() {
  const labels = ["0", ".25", ".5", ".75", "1"].map((label, place) =>
    svg("text", { x: at(place / 4), y: 12, "text-anchor": ["start", "middle", "middle", "middle", "end"][place] }, label),
  );
  return svg("svg", { class: "plot axis", height: 16, "aria-hidden": "true", focusable: "false" }, labels);
}

function bar(value) {
  const fillWidth = svg("rect", { class: "fill", x: 0, y: 3, height: 6, width: at(value || 0) });
  const track = svg("rect", { class: "track", x: 0, y: 3, height: 6, width: "100%" });
  return svg("svg", { class: "bar", height: 12, "aria-hidden": "true", focusable: "false" }, track, fillWidth);
}

function legend(hasFloor, hasBefore) {
  const swatch = (...parts) => svg("svg", { width: 26, height: 14, "aria-hidden": "true", class: "plot swatch" }, parts);
  const dot = swatch(
    svg("line", { class: "interval", x1: 2, x2: 24, y1: 7, y2: 7 }),
    svg("circle", { class: "score", cx: 13, cy: 7, r: 4.5 }),
  );
  const items = [[dot, "score with 95\u00a0% interval"]];
  const diamond = svg("path", { class: "before", transform: "translate(13,7)", d: "M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z" });
  if (hasBefore) items.push([swatch(diamond), "baseline"]);
  if (hasFloor) items.push([swatch(svg("line", { class: "floor", x1: 13, x2: 13, y1: 0, y2: 14 })), "floor"]);
  return h("p", { class: "legend" }, items.map(([mark, text]) => h("span", {}, mark, text)));
}

const CHART = { width: 720, height: 172, base: 148 };

function histogram(latency) {
  const { bins } = latency;
  const most = Math.max(...bins.map((bin) => bin[2]));
  const width = CHART.width / bins.length;
  const bars = bins.map(([low, high, n], place) => {
    const height = (n / most) * (CHART.base - 44);
    const title = svg("title", {}, `${duration(low)} to ${duration(high)}: ${plural(n, "example")}`);
    const shape = { class: "fill", x: place * width + 0.75, width: width - 1.5, y: CHART.base - height, height };
    return svg("rect", shape, title);
  });
  const marks = [["median", latency.median], ["p95", latency.p95]].filter(([, value]) => value !== null).map(([name, value], line) => {
    const x = positionIn(bins, value) * CHART.width;
    const place = x > CHART.width - 90 ? { x: x - 5, "text-anchor": "end" } : { x: x + 5 };
    return [svg("line", { class: "quantile", x1: x, x2: x, y1: 0, y2: CHART.base }), svg("text", { ...place, y: 16 + 20 * line }, name)];
  });
  const base = svg("line", { class: "grid", x1: 0, x2: CHART.width, y1: CHART.base, y2: CHART.base });
  const attributes = { class: "histogram", viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img" };
  const label = `Histogram: half of the examples took at most ${duration(latency.median)}, the slowest ${duration(latency.max)}`;
  return svg("svg", { ...attributes, "aria-label": label }, bars, base, marks, histogramTicks(bins));
}

function positionIn(bins, value) {
  const place = Math.max(0, bins.findIndex(([, high]) => value <= high));
  const [low, high] = bins[place];
  return (place + (high > low ? (value - low) / (high - low) : 0.5)) / bins.length;
}

function histogramTicks(bins) {
  const edges = [...bins.map(([low]) => low), bins[bins.length - 1][1]];
  const wanted = bins.length === 1 ? [0] : [0, 6, 12, 18, 24];
  return wanted.map((place, index) => {
    const anchor = index === 0 ? "start" : index === wanted.length - 1 ? "end" : "middle";
    const x = (place / bins.length) * CHART.width;
    return svg("text", { x, y: CHART.base + 20, "text-anchor": anchor }, duration(edges[place]));
  });
}

// The scale of a plot of differences: all intervals and zero are on it, with round ticks.
function differenceScale(all) {
  const ends = [0, ...all.flatMap((one) => (typeof one.difference === "number" ? [one.difference, ...(one.difference_ci95 || [])] : []))];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  // More than five labels would touch each other.
  const rough = Math.max(high - low, 0.02) / 3;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= rough);
  const first = Math.floor(low / step);
  const ticks = Array.from({ length: Math.max(1, Math.ceil(high / step) - first) + 1 }, (_, number) => (first + number) * step);
  return { low: ticks[0], high: ticks[ticks.length - 1], ticks };
}

const placeOn = (scale, value) => at((value - scale.low) / (scale.high - scale.low));

function differencePlot({ difference, difference_ci95: interval, is_best: isBest }, scale) {
  const middle = PLOT_HEIGHT / 2;
  const line = (name, value) => svg("line", { class: name, x1: placeOn(scale, value), x2: placeOn(scale, value), y1: 0, y2: PLOT_HEIGHT });
  const parts = [...scale.ticks.map((tick) => line("grid", tick)), line("zero", 0)];
  if (interval) {
    parts.push(svg("line", { class: "interval", x1: placeOn(scale, interval[0]), x2: placeOn(scale, interval[1]), y1: middle, y2: middle }));
    for (const end of interval) parts.push(svg("line", { class: "interval end", x1: placeOn(scale, end), x2: placeOn(scale, end), y1: 9, y2: 17 }));
  }
  const value = isBest ? 0 : difference;
  if (typeof value === "number") parts.push(svg("circle", { class: "score", cx: placeOn(scale, value), cy: middle, r: 4.5 }));
  return svg("svg", { class: "plot", height: PLOT_HEIGHT, "aria-hidden": "true", focusable: "false" }, parts);
}

function differenceAxis(scale) {
  const digits = Math.max(0, -Math.floor(Math.log10(scale.ticks[1] - scale.ticks[0]) + 1e-9));
  const labels = scale.ticks.map((tick, place) =>
    svg("text", { x: placeOn(scale, tick), y: 12, "text-anchor": place === 0 ? "start" : place === scale.ticks.length - 1 ? "end" : "middle" }, change(tick, digits)),
  );
  return svg("svg", { class: "plot axis", height: 16, "aria-hidden": "true", focusable: "false" }, labels);
}
