"use strict";
// Numbers with units, colours of the theme, small HTML helpers. Used by all scripts of the page.

const STATES = ["busy", "getting", "no_work", "join", "transport", "unknown", "lock", "event", "outside", "access",
  "blocked", "kernel"];
const STATE_NAMES = [
  "has a thread", "getting one (steal, resume)", "no work", "waits at an outstanding join",
  "waits for another host", "not recorded, or a spare worker at rest", "threads wait for locks", "threads wait for events of others",
  "all threads wait for time or descriptors", "waits for single values of other hosts (estimated)",
  "a thread waits in the operating system", "the operating system works for a thread"
];
const FONT = "system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", \"DejaVu Sans\", sans-serif";
const BUSY = 0, GETTING = 1, NO_WORK = 2, JOIN = 3, TRANSPORT = 4, UNKNOWN = 5,
      LOCK = 6, EVENT = 7, OUTSIDE = 8, ACCESS = 9, BLOCKED = 10, KERNEL = 11, MIXTURE = 15;
/// Busy at the bottom, then what follows from most to least interesting.
const STACK = [BUSY, KERNEL, BLOCKED, ACCESS, GETTING, LOCK, EVENT, JOIN, TRANSPORT, OUTSIDE, NO_WORK, UNKNOWN];

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
function scaled(value, step, units) {
  let i = 0;
  while (i + 1 < units.length && Math.abs(value) >= step * 0.9995) {
    value /= step;
    ++i;
  }
  return (i === 0 ? String(Math.round(value)) : digits(value)) + " " + units[i];
}
const formatTime = ns => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
const formatBytes = n => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const formatCount = n => Number(n.toFixed(Number.isInteger(n) ? 0 : 1)).toLocaleString("en-US");
const formatBy = unit => unit === "ns" ? formatTime : unit === "bytes" ? formatBytes : formatCount;
function formatPercent(part) {
  const percent = part * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return percent.toFixed(percent < 9.95 && percent > 0 ? 1 : 0) + " %";
}
/// A moment, with as many digits as tell moments apart that are `resolution` ns away from each other.
function formatMoment(ns, resolution, whole) {
  const [unit, name] = whole >= 1e9 ? [1e9, "s"] :
      whole >= 1e6                  ? [1e6, "ms"] :
      whole >= 1e3                  ? [1e3, "µs"] :
                                      [1, "ns"];
  const places = Math.min(9, Math.max(0, Math.ceil(Math.log10(unit / Math.max(resolution, 1)))));
  return (ns / unit).toFixed(places) + " " + name;
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}
function hexToRgb(hex) { return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)); }
/// A colour as a pixel of ImageData on little-endian machines.
function pixel(hex) {
  const [r, g, b] = hexToRgb(hex);
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}
function mixed(a, b, part) {
  const [x, y] = [hexToRgb(a), hexToRgb(b)];
  return "#" + x.map((v, i) => Math.round(v + (y[i] - v) * part).toString(16).padStart(2, "0")).join("");
}
/// Contrast of two colours as the Web Content Accessibility Guidelines define it, 1 to 21.
function contrast(a, b) {
  const light = hex => hexToRgb(hex)
                           .map(v => v / 255)
                           .map(v => v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4))
                           .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}
/// Black or white, whichever is read better on a colour.
const inkOn = hex => contrast(hex, "#ffffff") >= contrast(hex, "#000000") ? "#ffffff" : "#000000";
function isDark() { return matchMedia("(prefers-color-scheme: dark)").matches; }
/// Shades that tell neighbouring threads apart, all blue to green: orange and grey are idle.
function threadColours() {
  return isDark() ? ["#4f93d6", "#3fa7a0", "#6f86e0", "#57b878", "#3f7ab8", "#5cb3d9", "#8a7fe0", "#2f9186"] :
                    ["#3b7dbf", "#2f8f88", "#5468c4", "#3f9a5d", "#235f9c", "#4aa3cc", "#7566c9", "#1f766c"];
}

function element(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {}))
    if (key in e)
      e[key] = value;
    else
      e.setAttribute(key, value);
  for (const child of children) e.append(child);
  return e;
}
const byId = id => document.getElementById(id);
