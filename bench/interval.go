package main

import (
	"math"
	"slices"
)

// confidence is how often an interval has to hold the true median, at least.
const confidence = 0.95

// medianInterval returns the narrowest interval between two of the values, equally far from both
// ends of their order, that holds the median of what they are drawn from with at least confidence,
// and the confidence that it has: 0.979 for the second lowest and the second highest of ten values.
// Fewer than six values have none that is as good: then the interval is everything.
//
// It takes nothing for granted but that the values are independent: each of them is below the true
// median with a chance of one half, and so the number of those that are below is binomial. See
// W. R. Thompson, On Confidence Ranges for the Median and Other Expectation Distributions for
// Populations of Unknown Distribution Form, Annals of Mathematical Statistics 7 (1936), 122-128.
func medianInterval(values []float64) (low, high, sure float64) {
	n := len(values)
	sorted := slices.Sorted(slices.Values(values))
	low, high, sure = math.Inf(-1), math.Inf(1), 1
	below := 0.0                         // the chance that at most i values are below the median
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

// verdict is what two builds' difference in a figure comes to.
type verdict string

const (
	better    verdict = "better"
	same      verdict = "same"
	worse     verdict = "worse"
	muchWorse verdict = "WORSE" // by more than tolerated
)

// tolerated is the lowest ratio that is not muchWorse.
const tolerated = 0.97

// judge returns what an interval of the ratio says. All of it counts, not only the middle.
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

// comparison is what the rounds say of a figure of two builds.
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

// ratio returns how many times better new is than old, in the three decimals that the table shows:
// what looks the same there is the same.
func ratio(old, new float64, less bool, blur float64) float64 {
	if math.Abs(old-new) <= blur {
		return 1 // this is also what two zeros are
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
