// The page's data: the model, and the time lines and series behind it (tools/report/encode.cpp writes them).

const model = JSON.parse(byId("model").textContent);

/// Numbers of variable length, as encode.cpp writes them.
class NumberReader {
  constructor(base64) {
    const text = atob(base64);
    this.bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) this.bytes[i] = text.charCodeAt(i);
    this.at = 0;
  }
  byte() { return this.bytes[this.at++]; }
  number() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;  // not <<: times are longer than 32 bits
      scale *= 128;
    } while (byte & 128);
    return value;
  }
  signed() {
    const n = this.number();
    return n % 2 === 0 ? n / 2 : -(n + 1) / 2;
  }
}

/// One worker: pieces of time one behind the other, and sums so that any interval is known at once.
class Line {
  constructor(reader, from) {
    const n = this.count = reader.number();
    this.begin = new Float64Array(n + 1);
    this.kind = new Uint8Array(n);  // state, or MIXTURE
    this.begun = new Uint8Array(n);
    this.ended = new Uint8Array(n);
    this.thread = new Int32Array(n);  // of a mixture: number of pieces in it
    this.name = new Int32Array(n).fill(-1);
    this.other = new Int32Array(n).fill(-1);
    this.place = new Int32Array(n).fill(-1);
    this.sums = STATES.map(() => new Float64Array(n + 1));
    let time = from, thread = 0;
    for (let i = 0; i < n; ++i) {
      const head = reader.byte(), kind = head & 15, duration = reader.number();
      this.begin[i] = time;
      this.kind[i] = kind;
      for (const sum of this.sums) sum[i + 1] = sum[i];
      if (kind === MIXTURE) {
        this.thread[i] = reader.number();
        for (const sum of this.sums) sum[i + 1] += reader.number();
      } else {
        this.sums[kind][i + 1] += duration;
        if (kind === BUSY) {
          this.begun[i] = head >> 4;
          thread += reader.signed();
          this.thread[i] = thread;
          this.name[i] = reader.number() - 1;
          this.other[i] = reader.number() - 1;
          this.ended[i] = reader.byte();
          if (this.ended[i] === 3 || this.ended[i] === 6) this.place[i] = reader.number() - 1;
        }
      }
      time += duration;
    }
    this.begin[n] = time;
  }
  /// Index of the piece at a time, not before piece `low`. Outside: the first or last.
  pieceAt(time, low = 0) {
    let high = this.count - 1;
    if (low < high && this.begin[low + 1] > time) return low;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.begin[middle] <= time)
        low = middle;
      else
        high = middle - 1;
    }
    return Math.max(low, 0);
  }
  /// Time in each state from the start of the line up to `time`, into out, by state. Gives back the piece's
  /// index.
  sumsAt(time, out, low = 0) {
    if (this.count === 0) {
      out.fill(0);
      return 0;
    }
    const i = this.pieceAt(time, low);
    const length = this.begin[i + 1] - this.begin[i];
    const part = length > 0 ? Math.min(1, Math.max(0, (time - this.begin[i]) / length)) : 0;
    for (let s = 0; s < STATES.length; ++s)
      out[s] = this.sums[s][i] + part * (this.sums[s][i + 1] - this.sums[s][i]);
    return i;
  }
}

/// Values that change in steps: mean and maximum over any interval.
class Steps {
  constructor(reader) {
    const n = this.count = reader.number();
    this.time = new Float64Array(n);
    this.mean = new Float64Array(n);
    this.most = new Int32Array(n);
    this.sum = new Float64Array(n + 1);
    let time = 0;
    for (let i = 0; i < n; ++i) {
      time += reader.number();
      this.time[i] = time;
      this.mean[i] = reader.number() / 256;
      this.most[i] = reader.number();
      if (i > 0) this.sum[i] = this.sum[i - 1] + this.mean[i - 1] * (time - this.time[i - 1]);
    }
  }
  indexAt(time) {
    let low = 0, high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.time[middle] <= time)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
  sumAt(time) {
    if (this.count === 0 || time <= this.time[0]) return 0;
    const i = this.indexAt(time);
    return this.sum[i] + this.mean[i] * (time - this.time[i]);
  }
  meanOver(from, to) { return to > from ? (this.sumAt(to) - this.sumAt(from)) / (to - from) : 0; }
}

const hasTrace = model.kind === "trace";
const lines = [];
let ready = null;
if (hasTrace) {
  const reader = new NumberReader(byId("blob-timeline").textContent);
  for (let w = 0; w < model.hosts.length; ++w) lines.push(new Line(reader, model.timeline.from));
  ready = new Steps(new NumberReader(byId("blob-ready").textContent));
  byId("blob-timeline").remove();
  byId("blob-ready").remove();
}

const stateSums = () => new Float64Array(STATES.length);

/// Mean number of workers in each state, and ready threads, in `columns` equal parts of [from, to).
function activity(from, to, columns) {
  const width = (to - from) / columns;
  const result = STATES.map(() => new Float64Array(columns));
  const last = stateSums(), now = stateSums();
  for (const line of lines) {
    let piece = line.sumsAt(from, last);
    for (let c = 0; c < columns; ++c) {
      piece = line.sumsAt(from + (c + 1) * width, now, piece);
      for (let s = 0; s < STATES.length; ++s) result[s][c] += (now[s] - last[s]) / width;
      last.set(now);
    }
  }
  const readyMean = new Float64Array(columns);
  for (let c = 0; c < columns; ++c) readyMean[c] = ready.meanOver(from + c * width, from + (c + 1) * width);
  return {states: result, ready: readyMean, width};
}
