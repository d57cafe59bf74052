package main

import "context"

// calls makes callers send requests of size bytes.
func calls(size int) func(*cellRun) error {
	return func(r *cellRun) error {
		l, err := r.connect(needs{})
		if err != nil {
			return err
		}
		ops, err := repeat(r.callers, func() (op, error) { return l.(caller).newCaller(payload(size), false) })
		if err != nil {
			return err
		}
		return r.measure(ops, size, newLatencies(), nil)
	}
}

// sessionCalls makes each caller call on its own session.
func sessionCalls(r *cellRun) error {
	h, err := r.impl.listen(context.Background(), needs{})
	if err != nil {
		return err
	}
	links, err := repeat(r.callers, func() (link, error) { return h.dial(context.Background()) })
	r.later(func() { closeAll(links, h) })
	if err != nil {
		return err
	}
	var ops []op
	for _, l := range links {
		call, err := l.(caller).newCaller(payload(small), false)
		if err != nil {
			return err
		}
		if err := call(); err != nil {
			return err
		}
		ops = append(ops, call)
	}
	return r.measure(ops, small, newLatencies(), nil)
}

// structCalls makes callers call with a struct.
func structCalls(r *cellRun) error {
	l, err := r.connect(needs{typed: true})
	if err != nil {
		return err
	}
	ops, err := repeat(r.callers, l.(structCaller).newStructCaller)
	if err != nil {
		return err
	}
	if err := r.measure(ops, 0, newLatencies(), nil); err != nil {
		return err
	}
	r.row.MBPerS = absent
	return nil
}

// connections connects, calls once and closes, one connection after the other.
func connections(r *cellRun) error {
	h, err := r.impl.listen(context.Background(), needs{})
	if err != nil {
		return err
	}
	r.later(h.close)
	once := func() error {
		l, err := h.dial(context.Background())
		if err != nil {
			return err
		}
		defer l.close()
		return useOnce(l, needs{})
	}
	return r.measure([]op{once}, small, newLatencies(), nil)
}

// bothWays makes half of the callers call from each side, at the same time, after those of the
// dialling side have called alone.
func bothWays(r *cellRun) error {
	l, err := r.connect(needs{})
	if err != nil {
		return err
	}
	there, err := repeat(r.callers/2, func() (op, error) { return l.(caller).newCaller(payload(small), false) })
	if err != nil {
		return err
	}
	back, err := repeat(r.callers/2, func() (op, error) { return l.(backCaller).newBackCaller(payload(small)) })
	if err != nil {
		return err
	}
	if err := r.measure(there, small, nil, nil); err != nil {
		return err
	}
	oneWay := r.row.OpsPerS
	if err := r.measure(append(there, back...), small, newLatencies(), nil); err != nil {
		return err
	}
	r.row.OneWay = oneWay
	return nil
}
