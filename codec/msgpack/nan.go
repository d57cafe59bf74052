package msgpack

// nanKeys are the keys of a map that are NaN, or hold one. NaN is not equal to itself, so a Go map
// accepts it any number of times: such keys are compared as bytes.
type nanKeys struct{ seen map[string]struct{} }

// twice records a key, and reports whether it is a duplicate by its bytes.
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

// mayBeNaN reports whether values of p may be NaN, or hold one.
func (p *plan) mayBeNaN() bool {
	switch p.form {
	case asFloat, asInterface, asArray, asStruct:
		return true
	}
	return false
}
