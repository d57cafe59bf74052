package exchange

import (
	"errors"
	"fmt"
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
