"""Figures and tables as Markdown."""


def number(value):
    if isinstance(value, int) or (isinstance(value, float) and value >= 1000):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def busy(result):
    return result.get("foreign_cpus", 0) > 0.1


def machine_lines(machine):
    lines = [f"- CPU: {machine['cpu']}, {machine['usable_cpus']} usable; {machine['kernel']}",
             f"- Compiler: {machine['compiler']}; flags `{machine['compile_flags']}`",
             f"- Counter: {machine['counter_ticks_per_ns']:.3f} ticks per ns"]
    return lines + ([f"- Built beside it: {machine['peers']}"] if "peers" in machine else [])


def variant_table(measurement):
    lines = [f"| variant | workers | median s | min s | with start s | CPU s | / {measurement['reference']} "
             "| CPU / CPU | speed-up | steals | suspends | stack KB |", "|---" * 12 + "|"]
    for v in measurement["variants"]:
        if "status" in v:
            lines.append(f"| {v['name']} | {v['workers'] or ''} | {v['status']} | | | | | | | | | |")
            continue
        counts = v.get("counts")
        extra = (f"{counts['steals']:,} | {counts['suspends']:,} | {counts['stack_high_bytes'] // 1024:,}"
                 if counts else " | | ")
        lines.append(f"| {v['name']} | {v['workers'] or ''} | {v['median_s']:.4f} | {v['min_s']:.4f} "
                     f"| {v['total_median_s']:.4f} | {v['cpu_median_s']:.4f} | {v['over_reference']:.3f} "
                     f"| {v['cpu_over_reference']:.3f} | {v['speed_up']:.3f} | {extra} |")
    return lines


def row_table(rows):
    keys = [k for k, v in rows[0].items() if not isinstance(v, (dict, list))]
    lines = ["| " + " | ".join(k.replace("_", " ") for k in keys) + " |", "|" + "---|" * len(keys)]
    for row in rows:
        cells = ["" if v is None else f"{v:.3f}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v)
                 for v in (row[k] for k in keys)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def program_body(result, target_lines):
    """What a benchmark program measured, below the head."""
    lines = machine_lines(result["machine"]) if "machine" in result else []
    lines += [f"- Command: `{result['command']}`",
              f"- {result['repetitions']} rounds, interleaved; results checked: " + ("all correct" if result["correct"] else "**wrong**"), ""]
    if busy(result):
        lines += [f"**The machine was busy**: other programs used {result['foreign_cpus']:.1f} CPUs meanwhile. Figures of several workers"
                  " mean little here; ratios of CPU times on one worker do.", ""]
    if "skipped" in result:
        return lines + [f"Skipped: {result['skipped']}.", ""]
    if target_lines:
        lines += ["## Asked and measured", ""] + target_lines + [""]
    for m in result.get("measurements", []):
        lines += [f"## {m['title']}", ""]
        if "variants" in m:
            lines += variant_table(m) + [""]
        elif m.get("rows"):
            lines += row_table(m["rows"]) + [""]
        else:
            lines += [", ".join(f"{k.replace('_', ' ')} {number(v) if not isinstance(v, str) else v}"
                                for k, v in m.items() if k not in ("title", "rows")), ""]
    if result.get("figures"):
        lines += ["## Figures", "", "| what | value | definition |", "|---|---|---|"]
        for key, figure in result["figures"].items():
            least = f" (least {number(figure['least'])})" if "least" in figure else ""
            lines.append(f"| {key}: {figure['what']} | {number(figure['value'])} {figure['unit']}{least} | {figure['definition']} |")
        lines.append("")
    return lines + ["## Definitions", ""] + [f"- {k}: {v}" for k, v in result["definitions"].items()] + [""]
