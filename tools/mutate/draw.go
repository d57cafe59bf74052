package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change to the code.
type mutant struct {
	ID   string `json:"id"` // the same as long as its function is unchanged
	File string `json:"file"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
	From string `json:"from"` // the original line
	To   string `json:"to"`   // the changed line

	folder folder
	source []byte // of the whole changed file
	place  uint64 // in the order of the draw
}

// draw returns all mutants of the files with a path that begins with only, in an order determined
// by seed.
func draw(all []folder, seed uint64, only string) ([]*mutant, error) {
	var drawn []*mutant
	for _, f := range all {
		for _, name := range f.files {
			if !strings.HasPrefix(f.file(name), only) {
				continue
			}
			of, err := mutants(f, name, seed)
			if err != nil {
				return nil, err
			}
			drawn = append(drawn, of...)
		}
	}
	slices.SortFunc(drawn, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.ID, b.ID))
	})
	return drawn, nil
}

// mutants returns the mutants of one file.
func mutants(f folder, name string, seed uint64) ([]*mutant, error) {
	src, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	points, file, err := find(name, src)
	if err != nil {
		return nil, err
	}
	var list []*mutant
	again := map[string]int{} // number of equal changes before in the same function
	for _, p := range points {
		from, to := file.Offset(p.pos), file.Offset(p.end)
		m := &mutant{File: f.file(name), Line: file.Line(p.pos), Kind: p.kind, folder: f}
		m.source = slices.Concat(src[:from], []byte(p.text), src[to:])
		m.From = lines(src, from, to)
		m.To = lines(m.source, from, from+len(p.text))
		key := fmt.Sprintf("%s %s %s: %s -> %s", m.File, p.function, p.kind, m.From, m.To)
		again[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s (%d)", key, again[key]))
		m.ID = fmt.Sprintf("%x", sum[:5])
		m.place = binary.BigEndian.Uint64(shuffled(seed, sum[:]))
		list = append(list, m)
	}
	return list, nil
}

func shuffled(seed uint64, key []byte) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(key), seed))
	return sum[:]
}

// lines returns the whole lines around src[from:to], without their indentation.
func lines(src []byte, from, to int) string {
	for from > 0 && src[from-1] != '\n' {
		from--
	}
	for to < len(src) && src[to] != '\n' {
		to++
	}
	return strings.TrimSpace(string(src[from:to]))
}
