package exchange

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ReadPolicy reads rules in text format, one a line, with "#" before a comment:
//
//	# tills order, and the office sees all
//	till   -> orders
//	office -> *
//
// The error names an invalid line, or a rule that can never match, or is the read error of r.
func ReadPolicy(r io.Reader) (rules []Rule, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		from, to, ok := strings.Cut(text, "->")
		if !ok || strings.Contains(to, "->") {
			return nil, fmt.Errorf("exchange: line %d of the policy is %q: a rule is \"from -> to\"", n, text)
		}
		rule := Rule{strings.TrimSpace(from), strings.TrimSpace(to)}
		if err := rule.check(); err != nil {
			return nil, fmt.Errorf("exchange: line %d of the policy, %v: %w", n, rule, err)
		}
		rules = append(rules, rule)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("exchange: reading the policy: %w", err)
	}
	return rules, nil
}
