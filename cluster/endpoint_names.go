package cluster

import (
	"strconv"
	"strings"
)

// endpointNames makes distinct names that the tools of NATS accept.
type endpointNames map[string]bool

// pick returns a name for a function, as close as possible to called.
func (n endpointNames) pick(called string, function uint16) string {
	number := "_" + strconv.Itoa(int(function))
	name := strings.Map(endpointRune, called)
	if name == "" {
		name = "function" + number
	}
	for n[name] {
		name += number
	}
	n[name] = true
	return name
}

// endpointRune returns r, or its replacement in names of endpoints.
func endpointRune(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		return r
	}
	return '_'
}
