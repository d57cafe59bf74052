package exchange

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Any is every identity in a [Rule], including the empty one of nodes without a proof.
const Any = "*"

// Rule allows nodes with the proven identity From to reach nodes with the proven identity To, and
// to list them. The opposite direction needs another rule; calls back within a session need none.
type Rule struct {
	From, To string
}

// String returns the rule in the format of a policy: "shop -> orders".
func (r Rule) String() string { return fmt.Sprintf("%q -> %q", r.From, r.To) }

// mostIdentity is the maximum size of an identity in bytes.
const mostIdentity = 255

// check returns an error if the rule can never match.
func (r Rule) check() error {
	for _, identity := range []string{r.From, r.To} {
		switch {
		case identity == "":
			return errors.New("a rule needs a From and a To; \"*\" is every identity")
		case identity != Any && strings.Contains(identity, Any):
			return errors.New("\"*\" stands for a whole identity, and not for a part of one")
		case identity != strings.TrimSpace(identity):
			return errors.New("no identity begins or ends with a space")
		case len(identity) > mostIdentity:
			return fmt.Errorf("no identity has more than %d bytes", mostIdentity)
		case !isText(identity):
			return errors.New("there is something in it that cannot be printed")
		}
	}
	return nil
}

// isText reports whether an identity is printable text.
func isText(identity string) bool {
	return utf8.ValidString(identity) &&
		!strings.ContainsFunc(identity, func(r rune) bool { return !unicode.IsPrint(r) })
}

// policy is the list of rules.
type policy []Rule

// allows reports whether from may reach to.
func (p policy) allows(from, to string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool {
		return (r.From == Any || r.From == from) && (r.To == Any || r.To == to)
	})
}

// reachable reports whether any identity may reach to.
func (p policy) reachable(to string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool { return r.To == Any || r.To == to })
}

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
