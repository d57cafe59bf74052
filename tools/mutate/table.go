package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// table prints the figures of the journal, and each mutant that the tests have not caught.
func (j *journal) table(w io.Writer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	count := map[verdict]int{}
	var left []result
	total := 0
	for _, res := range j.results {
		count[res.Verdict]++
		if res.Verdict == skipped {
			continue
		}
		total++
		if !res.Verdict.caught() {
			left = append(left, res)
		}
	}
	slices.SortFunc(left, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, res := range left {
		fmt.Fprintf(w, "%-9s %s %s:%d %s %v\n    - %s\n    + %s\n", res.Verdict, res.ID, res.File, res.Line, res.Kind, res.Tests, res.From, res.To)
	}
	for _, v := range verdicts {
		fmt.Fprintf(w, "%-9s %4d  %5.1f %%\n", v, count[v], 100*float64(count[v])/float64(max(total, 1)))
	}
	fmt.Fprintf(w, "%-9s %4d  (and %d that do not compile)\n", "all", total, count[skipped])
}
