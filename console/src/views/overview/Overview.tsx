/** How the installation does: turns, times, routing, alarms, rotations, errors. Each chart links to its rows. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Bar, BarChart, CartesianGrid, Legend, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { get } from "../../api/http.ts";
import type { Overview as Numbers } from "../../api/types.ts";
import { Empty, Loaded } from "../../parts/States.tsx";
import { actor, capital, count, milliseconds, percent, words } from "../../parts/format.ts";
import { dayRange, everyDay, inOrder, startOf } from "./days.ts";

const PERIODS = [1, 7, 30, 90] as const;
const COLOURS = { main: "var(--accent)", second: "var(--chart-2)", third: "var(--chart-3)", alarm: "var(--alarm)", warn: "var(--warn)" } as const;

export function Overview() {
  const { days = 30, of } = useSearch({ from: "/overview" });
  const navigate = useNavigate({ from: "/overview" });
  const since = startOf(days);
  const numbers = useQuery({ queryKey: ["overview", since, of], queryFn: ({ signal }) => get<Numbers>("/v1/overview", { since, of }, signal) });
  return (
    <main id="content" className="view wide" tabIndex={-1}>
      <div className="view-head">
        <h2>Overview</h2>
        <div className="filters">
          <label>
            <span className="quiet-text small">Period</span>
            <select value={days} onChange={({ target }) => void navigate({ search: (earlier) => ({ ...earlier, days: Number(target.value) }), replace: true })}>
              {PERIODS.map((period) => (
                <option key={period} value={period}>
                  {period === 1 ? "today" : `${period} days`}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span className="quiet-text small">Of</span>
            <select value={of ?? "me"} onChange={({ target }) => void navigate({ search: (earlier) => ({ ...earlier, of: target.value === "all" ? ("all" as const) : undefined }), replace: true })}>
              <option value="me">me</option>
              <option value="all">everybody (staff)</option>
            </select>
          </label>
        </div>
      </div>
      <Loaded query={numbers} what="the overview">
        {(data) => (data.turnsPerDay.length === 0 ? <Empty>Nothing happened in this period. Choose a longer one, or write a message in the chat.</Empty> : <Charts numbers={data} of={of} />)}
      </Loaded>
    </main>
  );
}

type Of = "all" | undefined;

function Charts({ numbers, of }: { numbers: Numbers; of: Of }) {
  const { since, until, turnsPerDay, routing, alarms, rotations, errors } = numbers;
  const stations = inOrder(numbers.stations);
  const days = everyDay(since, until);
  const turns = days.map((day) => ({ day, turns: 0, failed: 0, ...turnsPerDay.find((one) => one.day === day) }));
  const danger = days.map((day) => ({ day, certain: 0, possible: 0, ...alarms.find((one) => one.day === day) }));
  const rotated = days.map((day) => ({ day, count: 0, ...rotations.find((one) => one.day === day) }));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return (
    <div className="charts">
      <Chart title="Turns per day" text={`${count(sum(turnsPerDay.map((one) => one.turns)), "turn")}, ${sum(turnsPerDay.map((one) => one.failed))} failed`} links={turnsPerDay.map(({ day, turns: all }) => <Link key={day} to="/turns" search={{ ...dayRange(day), of }}>{day}: {count(all, "turn")}</Link>)}>
        <Bars data={turns} name="day" bars={[["turns", "turns", COLOURS.main], ["failed", "failed", COLOURS.alarm]]} />
      </Chart>
      <Chart title="Time per station, in milliseconds" text="Half of the turns are faster than p50, one in a hundred is slower than p99." links={stations.map(({ name, p99, count: all }) => <Link key={name} to="/turns" search={{ since, until, of, station: name, stationSlowerThan: p99 }}>{capital(words(name))}: {milliseconds(p99)} at p99 of {count(all, "run")}; the slowest ones</Link>)}>
        <Bars data={stations.map((station) => ({ ...station, name: words(station.name) }))} name="name" bars={[["p50", "p50", COLOURS.main], ["p95", "p95", COLOURS.second], ["p99", "p99", COLOURS.third]]} />
      </Chart>
      <Chart title="Who answered" text="How many turns each specialist answered, and how sure the routing was on average." links={routing.map(({ specialist, turns: all, confidence }) => <Link key={specialist} to="/turns" search={{ since, until, of, specialist }}>{actor(specialist)}: {count(all, "turn")}{confidence !== null && `, ${percent(confidence)} sure`}</Link>)}>
        <Bars data={routing.map((route) => ({ ...route, specialist: actor(route.specialist) }))} name="specialist" bars={[["turns", "turns", COLOURS.main]]} />
      </Chart>
      <Chart title="Alarms" text={`${sum(alarms.map((one) => one.certain))} certain, ${sum(alarms.map((one) => one.possible))} possible`} links={(["certain", "possible"] as const).map((certainty) => <Link key={certainty} to="/alarms" search={{ since, until, of, certainty }}>The {certainty} ones</Link>)}>
        <Bars data={danger} name="day" bars={[["certain", "certain", COLOURS.alarm], ["possible", "possible", COLOURS.second]]} />
      </Chart>
      <Chart title="Rotations" text={`Old turns were archived ${count(sum(rotations.map((one) => one.count)), "time")}.`} links={rotations.map(({ day, count: all }) => <Link key={day} to="/rotations" search={{ ...dayRange(day), of }}>{day}: {all}</Link>)}>
        <Bars data={rotated} name="day" bars={[["count", "rotations", COLOURS.main]]} />
      </Chart>
      <Chart title="Errors" text={errors.length === 0 ? "No turn ended with an error." : "Turns that ended with an error."} links={errors.map(({ name, count: all }) => <Link key={name} to="/turns" search={{ since, until, of, error: name }}>{words(name)}: {all}</Link>)}>
        {errors.length > 0 && <Bars data={errors.map((error) => ({ ...error, name: words(error.name) }))} name="name" bars={[["count", "turns", COLOURS.alarm]]} />}
      </Chart>
    </div>
  );
}

interface ChartProps {
  title: string;
  text: string;
  links: readonly ReactNode[];
  children: ReactNode;
}

function Chart({ title, text, links, children }: ChartProps) {
  return (
    <section className="panel chart" aria-label={title}>
      <h3>{title}</h3>
      <p className="quiet-text small">{text}</p>
      {children}
      {links.length > 0 && (
        <details open={links.length <= 8}>
          <summary>The rows behind it</summary>
          <ul className="plain small">
            {links.map((link, index) => (
              <li key={index}>{link}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

interface BarsProps {
  data: readonly object[];
  name: string;
  /** The key, the name and the colour of each bar. */
  bars: readonly (readonly [string, string, string])[];
}

/** A drawing for those who see it; the list of rows beneath says the same. */
function Bars({ data, name, bars }: BarsProps) {
  return (
    <div className="drawing" aria-hidden="true">
      <ResponsiveContainer width="100%" height={190}>
        <BarChart data={data as object[]} accessibilityLayer={false} margin={{ left: -18, right: 4, top: 6 }}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey={name} tick={{ fill: "var(--quiet)", fontSize: 11 }} tickFormatter={(text: string) => text.replace(/^\d{4}-/, "")} minTickGap={8} />
          <YAxis allowDecimals={false} tick={{ fill: "var(--quiet)", fontSize: 11 }} />
          <Tooltip contentStyle={{ background: "var(--sheet)", border: "1px solid var(--line)" }} cursor={{ fill: "var(--own)" }} />
          {bars.length > 1 && <Legend wrapperStyle={{ fontSize: 12 }} />}
          {bars.map(([key, label, colour]) => (
            <Bar key={key} dataKey={key} name={label} fill={colour} isAnimationActive={false} maxBarSize={36} />
          ))}
        </BarChart>
      </ResponsiveContainer>
    </div>
  );
}
