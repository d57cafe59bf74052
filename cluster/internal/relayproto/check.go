package relayproto

import "regexp"

const (
	mostText     = 255     // maximum bytes of an identity, a region or a version
	mostMetadata = 4 << 10 // maximum bytes, with the keys
)

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsToken reports whether a text is a valid name or id of a node.
func IsToken(text string) bool { return token.MatchString(text) }

// Check returns an ErrBadRegistration if the information of a node is invalid. A node that only
// calls other nodes has no name.
func (m *Member) Check() error {
	size := 0
	for k, v := range m.Metadata {
		size += len(k) + len(v)
	}
	switch {
	case m.Name != "" && !IsToken(m.Name):
		return ErrBadRegistration.Withf("the name %.80q of a node: it has 1 to 64 letters, digits, '-' and '_'", m.Name)
	case !IsToken(m.ID):
		return ErrBadRegistration.Withf("the id %.80q of a node: it has 1 to 64 letters, digits, '-' and '_'", m.ID)
	case !IsToken(m.Instance):
		return ErrBadRegistration.Withf("the instance %.80q of a node: it has 1 to 64 letters, digits, '-' and '_'", m.Instance)
	case m.State != Present && m.State != Draining:
		return ErrBadRegistration.Withf("the state %.80q of a node: it is %q or %q", m.State, Present, Draining)
	case max(len(m.Identity), len(m.Region), len(m.Version)) > mostText:
		return ErrBadRegistration.Withf("the identity, the region and the version of a node have at most %d bytes each", mostText)
	case size > mostMetadata:
		return ErrBadRegistration.Withf("the metadata of a node has %d bytes, and %d are allowed", size, mostMetadata)
	}
	return nil
}
