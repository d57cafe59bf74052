package main

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// figure is a number that may be absent: NaN, and null in JSON.
type figure float64

var absent = figure(math.NaN())

func (f figure) known() bool { return !math.IsNaN(float64(f)) }

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	if !f.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = absent
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// row has the results of one cell. The meaning of some figures depends on the workload; see
// README.md.
type row struct {
	Workload string `json:"workload"`
	Impl     string `json:"impl"`
	Callers  int    `json:"callers"` // or streams, or sessions, or pipes

	OpsPerS     figure `json:"ops_per_s"`
	MBPerS      figure `json:"mb_per_s"` // payload, one way
	P50         figure `json:"p50_us"`
	P99         figure `json:"p99_us"`
	P999        figure `json:"p999_us"`
	AllocsPerOp figure `json:"allocs_per_op"` // of both ends, as all below
	BytesPerOp  figure `json:"bytes_per_op"`
	CPUPerOp    figure `json:"cpu_us_per_op"`
	MemBytes    figure `json:"mem_bytes"`

	StackBytes figure `json:"stack_bytes"`       // of the handlers of idle pipes
	OneWay     figure `json:"one_way_ops_per_s"` // what both-ways is to be compared with

	OfPath     figure `json:"of_path"`              // the part of what the path allows
	RoundTrips figure `json:"round_trips"`          // the latency that it is about, as many of them
	Changing   figure `json:"changing_round_trips"` // p99 within a second of a change of the path
	Jain       figure `json:"jain"`                 // how evenly streams share

	Rounds int `json:"rounds"`
	// between rounds, of the headline figure: (highest-lowest)/median
	Spread figure `json:"spread"`
	Error  string `json:"error,omitempty"`
}

func newRow(c cell) row {
	r := row{Workload: c.workload.name, Impl: c.impl.name, Callers: c.callers, Rounds: 1, Spread: absent}
	for _, f := range r.figures() {
		*f = absent
	}
	return r
}

// figures returns all measured figures.
func (r *row) figures() []*figure {
	return []*figure{&r.OpsPerS, &r.MBPerS, &r.P50, &r.P99, &r.P999, &r.AllocsPerOp, &r.BytesPerOp, &r.CPUPerOp, &r.MemBytes, &r.StackBytes, &r.OneWay,
		&r.OfPath, &r.RoundTrips, &r.Changing, &r.Jain}
}

// setLatencies fills in the percentiles.
func (r *row) setLatencies(l *latencies) {
	p50, p99, p999 := l.quantiles()
	r.P50, r.P99, r.P999 = micros(p50), micros(p99), micros(p999)
}

func micros(d time.Duration) figure { return figure(d.Seconds() * 1e6) }

// mergeRounds returns the row of one cell over several rounds: the median of each figure, and the
// spread of the headline figure. If a round failed, that is the result.
func mergeRounds(rounds []row, headline func(*row) figure) row {
	merged := rounds[0]
	merged.Rounds = len(rounds)
	for _, r := range rounds {
		if r.Error != "" {
			merged = row{Workload: r.Workload, Impl: r.Impl, Callers: r.Callers, Rounds: len(rounds), Spread: absent, Error: r.Error}
			for _, f := range merged.figures() {
				*f = absent
			}
			return merged
		}
	}
	for i, f := range merged.figures() {
		var values []figure
		for _, r := range rounds {
			values = append(values, *r.figures()[i])
		}
		*f = median(values)
	}
	if len(rounds) > 1 {
		var values []figure
		for _, r := range rounds {
			values = append(values, headline(&r))
		}
		merged.Spread = (slices.Max(values) - slices.Min(values)) / median(values)
	}
	return merged
}

// median returns the value in the middle, or the mean of the two in the middle. It is absent if one
// of the values is.
func median(values []figure) figure {
	s := slices.Clone(values)
	slices.Sort(s)
	if len(s) == 0 || !s[0].known() { // NaN sorts first
		return absent
	}
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}
