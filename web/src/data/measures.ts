/** Measures of heads, looked up by head and by name. */

import type { MethodProps, ScoresProps } from "../contract";
import { floats, type Part } from "../wire";

export class Measures {
  readonly methods: MethodProps[];
  private readonly places: Map<string, number>;
  private readonly values: Map<string, Float32Array>;

  constructor(part: Part<ScoresProps> | null) {
    this.methods = part?.props.methods ?? [];
    this.places = new Map((part?.props.heads ?? []).map((head, index) => [head, index]));
    this.values = new Map(Object.entries(part?.arrays ?? {}).map(([name, grid]) => [name, floats(grid)]));
  }

  /** NaN where the measure says nothing. */
  of(head: string, method: string): number {
    return this.values.get(method)?.[this.places.get(head) ?? -1] ?? Number.NaN;
  }

  /** A value as a share of its measure's range. */
  share(head: string, method: string): number {
    const about = this.methods.find((one) => one.name === method);
    if (!about) return Number.NaN;
    const share = (this.of(head, method) - about.low) / Math.max(1e-12, about.high - about.low);
    return Math.min(1, Math.max(0, share));
  }

  /** The measures that say most about a head: those asked for, then those furthest from what chance gives. */
  telling(head: string, asked: string[], count: number): { name: string; value: number }[] {
    const far = ({ name, baseline, low, high }: MethodProps) =>
      asked.includes(name) ? 9 : (this.of(head, name) - (baseline ?? high)) / Math.max(1e-12, high - low);
    return this.methods
      .filter((one) => !Number.isNaN(this.of(head, one.name)))
      .sort((a, b) => far(b) - far(a))
      .slice(0, count)
      .map(({ name }) => ({ name, value: this.of(head, name) }));
  }

  /** What stands out most in a head: the measure furthest above what chance gives, if any is far above it.
   *  The plain difference, so that what is rare by chance (the next token) goes before what is not (the same sentence). */
  best(head: string): { name: string; value: number } | null {
    let found: { name: string; value: number } | null = null;
    let most = 0.35;
    for (const { name, baseline, low, high } of this.methods) {
      if (baseline === null) continue;
      const value = this.of(head, name);
      const above = (value - baseline) / Math.max(1e-12, high - low);
      if (above > most) [most, found] = [above, { name, value }];
    }
    return found;
  }
}

/** The name of a measure as people write it. */
export function spoken(name: string): string {
  return name.replaceAll("_", " ");
}

/** Two digits, as everywhere in the page. */
export function number(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (value === Number.NEGATIVE_INFINITY) return "masked";
  const size = Math.abs(value);
  if (size < 0.00005) return "0";
  const digits = size < 0.001 ? 4 : size < 0.01 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return value.toFixed(digits).replace("-", "−");
}
