package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// wires are all open wires through doors.
type wires struct {
	mu   sync.Mutex
	all  map[*cuttable]bool // guarded by mu, as all below; nil after the end
	cuts int                // how many were cut so far
}

// cutEach is the average interval between cuts.
const cutEach = 30 * time.Millisecond

func newWires() *wires { return &wires{all: make(map[*cuttable]bool)} }

// add reports false after the end.
func (ws *wires) add(w *cuttable) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all == nil {
		return false
	}
	ws.all[w] = true
	return true
}

func (ws *wires) remove(w *cuttable) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.all, w)
}

// take returns a random wire, nil if there is none, and counts it as cut.
func (ws *wires) take() *cuttable {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.all) == 0 {
		return nil
	}
	all := slices.Collect(maps.Keys(ws.all))
	w := all[rand.IntN(len(all))]
	delete(ws.all, w)
	ws.cuts++
	return w
}

// count returns how many were cut.
func (ws *wires) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.cuts
}

// cut cuts one wire after the other, until ctx ends.
func (ws *wires) cut(ctx context.Context) {
	for rest(ctx, cutEach/2+rand.N(cutEach)) == nil {
		if w := ws.take(); w != nil {
			w.cut()
		}
	}
}

// close ends all wires, open and later ones.
func (ws *wires) close() {
	ws.mu.Lock()
	all := ws.all
	ws.all = nil
	ws.mu.Unlock()
	for w := range all {
		w.close()
	}
}

// trouble returns the faults of the wires: they are cut at random. Other faults occur meanwhile.
func (ws *wires) trouble(lasts time.Duration, meanwhile ...trouble) trouble {
	var cutting sync.WaitGroup
	stop := func() {}
	return trouble{
		begins: "wires are cut at random, one each " + short(cutEach), ends: "no more wires are cut", lasts: lasts,
		begin: func(ctx context.Context) error {
			ctx, stop = context.WithCancel(ctx)
			cutting.Go(func() { ws.cut(ctx) }) // ends with stop
			return nil
		},
		mend:      func(context.Context) error { stop(); cutting.Wait(); return nil },
		meanwhile: meanwhile,
	}
}
