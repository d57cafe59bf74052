package exchange

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Any is every identity in a [Rule]: also that of a node which has proved none.
const Any = "*"

// Rule lets nodes that have proved the identity From reach nodes that have proved the identity To,
// and learn who these are. The other way needs another rule; calls back within a session need none.
type Rule struct {
	From, To string
}

// String returns the rule as people read it: "shop -> orders".
func (r Rule) String() string { return fmt.Sprintf("%q -> %q", r.From, r.To) }

// mostIdentity is how many bytes an identity has at most.
const mostIdentity = 255

// check returns why a rule can never match.
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

// isText reports whether people can read all of an identity.
func isText(identity string) bool {
	return utf8.ValidString(identity) &&
		!strings.ContainsFunc(identity, func(r rune) bool { return !unicode.IsPrint(r) })
}

// policy is who may reach whom.
type policy []Rule

// allows reports whether from may reach to.
func (p policy) allows(from, to string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool {
		return (r.From == Any || r.From == from) && (r.To == Any || r.To == to)
	})
}

// reachable reports whether somebody may reach to.
func (p policy) reachable(to string) bool {
	return slices.ContainsFunc(p, func(r Rule) bool { return r.To == Any || r.To == to })
}
