package main

import (
	"context"
	"fmt"
	"time"
)

// cellRun is the measurement of one cell.
type cellRun struct {
	cell
	time time.Duration
	row  row
	path *path    // made by connect; nil if the workload has none
	ends []func() // to be closed, in this order
}

// measureCell measures a cell in this process. end closes all open resources, also after an error;
// with some peers and many streams that takes long.
func measureCell(c cell, d time.Duration) (result row, end func(), err error) {
	r := &cellRun{cell: c, time: d, row: newRow(c)}
	err = c.workload.run(r)
	return r.row, func() {
		for _, f := range r.ends {
			f()
		}
	}, err
}

// later schedules a call of f at the end.
func (r *cellRun) later(f func()) { r.ends = append(r.ends, f) }

// warmUp is how long ops run before they are measured.
func (r *cellRun) warmUp() time.Duration { return r.time / 4 }

// connect returns a link of the implementation that has been used once. It is closed at the end.
func (r *cellRun) connect(n needs) (link, error) {
	r.path = newPath(r.workload.path)
	n.path = r.path
	h, err := r.impl.listen(context.Background(), n)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l, err := h.dial(context.Background())
	if err != nil {
		h.close()
		return nil, fmt.Errorf("dial: %w", err)
	}
	r.later(func() { l.close(); h.close(); r.path.close() })
	return l, useOnce(l, n)
}

// useOnce makes a call, to complete the work that only a first call has.
func useOnce(l link, n needs) error {
	c, ok := l.(caller)
	if !ok {
		return nil
	}
	call, err := c.newCaller(payload(small), false)
	if n.typed {
		call, err = l.(structCaller).newStructCaller()
	}
	if err != nil {
		return err
	}
	return call()
}

// closeAll closes links and then their host.
func closeAll(links []link, h host) {
	for _, l := range links {
		l.close()
	}
	h.close()
}

// measure runs ops, which carry size bytes each, and fills in their cost. settle, unless it is nil,
// waits until all that they began has ended.
func (r *cellRun) measure(ops []op, size int, lat *latencies, settle func(n int64) error) error {
	warm, err := drive(ops, r.warmUp(), nil)
	if err != nil {
		return err
	}
	begin := usageNow()
	n, err := drive(ops, r.time, lat)
	if err == nil && settle != nil {
		err = settle(warm + n)
	}
	begin.cost(&r.row, n, size)
	if lat != nil {
		r.row.setLatencies(lat)
	}
	return err
}

// repeat returns the results of n calls of make.
func repeat[T any](n int, make func() (T, error)) ([]T, error) {
	list := []T{}
	for range n {
		v, err := make()
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// payload returns n bytes without long runs of one value.
func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}
