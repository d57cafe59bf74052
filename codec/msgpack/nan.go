package msgpack

// nanKeys are the keys of a map that are NaN, or hold one. NaN is not equal to itself, so that a Go
// map takes it any number of times: such keys are compared as bytes.
type nanKeys struct{ seen map[string]struct{} }

// twice notes a key, and reports whether the same bytes have come before.
func (k *nanKeys) twice(key []byte) bool {
	if _, twice := k.seen[string(key)]; twice {
		return true
	}
	if k.seen == nil {
		k.seen = make(map[string]struct{})
	}
	k.seen[string(key)] = struct{}{}
	return false
}

// mayBeNaN reports whether values that p is for may be NaN, or hold one.
func (p *plan) mayBeNaN() bool {
	switch p.form {
	case asFloat, asInterface, asArray, asStruct:
		return true
	}
	return false
}
