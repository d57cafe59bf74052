package main

import (
	"math"
	"slices"
)

// confidence is the minimum probability that an interval contains the true median.
const confidence = 0.95

// medianInterval returns the narrowest interval between two of the values, equally far from both
// ends of their order, that contains the median of their distribution with at least confidence, and
// its actual confidence: 0.979 for the second lowest and the second highest of ten values. Fewer
// than six values have no such interval: then it is infinite.
//
// The only assumption is that the values are independent: each of them is below the true median
// with a probability of one half, and so the number of those below is binomial.
//
// See W. R. Thompson, On Confidence Ranges for the Median and Other Expectation Distributions for
// Populations of Unknown Distribution Form, Annals of Mathematical Statistics 7 (1936), 122-128.
func medianInterval(values []float64) (low, high, sure float64) {
	n := len(values)
	sorted := slices.Sorted(slices.Values(values))
	low, high, sure = math.Inf(-1), math.Inf(1), 1
	below := 0.0                         // the probability that at most i values are below it
	exactly := math.Pow(0.5, float64(n)) // and that exactly i are
	for i := range n / 2 {
		below += exactly
		if 1-2*below < confidence {
			break
		}
		low, high, sure = sorted[i], sorted[n-1-i], 1-2*below
		exactly *= float64(n-i) / float64(i+1)
	}
	return low, high, sure
}

// verdict is the result of a comparison of a figure.
type verdict string

const (
	better    verdict = "better"
	same      verdict = "same"
	worse     verdict = "worse"
	muchWorse verdict = "WORSE" // by more than tolerated
)

// tolerated is the lowest ratio that is not muchWorse.
const tolerated = 0.97

// judge returns the verdict for an interval of the ratio. The whole interval counts, not only its
// middle.
func judge(low, high float64) verdict {
	switch {
	case high < tolerated:
		return muchWorse
	case high < 1:
		return worse
	case low > 1:
		return better
	}
	return same
}

// comparison is the comparison of a figure of two builds over the rounds.
type comparison struct {
	old, new  float64 // medians
	ratio     float64 // the median of the rounds' ratios; above 1 the new build is better
	low, high float64 // the interval of ratio
	verdict   verdict
}

// compareFigure compares the figures of two builds round by round. less is set if a smaller figure
// is better. A difference below blur counts as none.
func compareFigure(old, new []float64, less bool, blur float64) comparison {
	ratios := make([]float64, len(old))
	for i := range ratios {
		ratios[i] = ratio(old[i], new[i], less, blur)
	}
	c := comparison{old: middle(old), new: middle(new), ratio: middle(ratios)}
	c.low, c.high, _ = medianInterval(ratios)
	c.verdict = judge(c.low, c.high)
	return c
}

// ratio returns how many times better new is than old, in the three decimals of the table: figures
// that look equal there count as equal.
func ratio(old, new float64, less bool, blur float64) float64 {
	if math.Abs(old-new) <= blur {
		return 1 // also for two zeros
	}
	if less {
		old, new = new, old
	}
	return math.Round(new/old*1000) / 1000
}

// middle returns the median of values.
func middle(values []float64) float64 {
	list := make([]figure, len(values))
	for i, v := range values {
		list[i] = figure(v)
	}
	return float64(median(list))
}
