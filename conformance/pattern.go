package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// match reports whether a received value matches a pattern of spec/scenarios.md. It adds the names
// that the pattern binds to bound; names in names have values, which have to be received again.
func match(pattern, came any, names, bound map[string]any) (bool, error) {
	switch p := pattern.(type) {
	case string:
		if p == "_" {
			return true, nil
		}
		if name, ok := strings.CutPrefix(p, "$"); ok && names[name] == nil {
			if old, ok := bound[name]; ok {
				return reflect.DeepEqual(old, came), nil
			}
			bound[name] = came
			return true, nil
		}
	case []any:
		return matchList(p, came, names, bound)
	case map[string]any:
		for key, test := range tests {
			if arg, ok := p[key]; ok {
				return test(arg, came, names, bound)
			}
		}
	}
	want, err := value(pattern, names)
	return err == nil && reflect.DeepEqual(want, came), err
}

func matchList(pattern []any, came any, names, bound map[string]any) (bool, error) {
	list, ok := came.([]any)
	if n := len(pattern) - 1; ok && n >= 0 && pattern[n] == "..." && len(list) >= n {
		pattern, list = pattern[:n], list[:n]
	}
	if !ok || len(list) != len(pattern) {
		return false, nil
	}
	for i := range list {
		if ok, err := match(pattern[i], list[i], names, bound); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// tests are the objects of patterns for a condition. The map is filled by init, because tests use
// match.
var tests map[string]func(arg, came any, names, bound map[string]any) (bool, error)

func init() {
	bound := func(fits func(came, bound int64) bool) func(arg, came any, names, bound map[string]any) (bool, error) {
		return func(arg, came any, names, _ map[string]any) (bool, error) {
			n, err := number(arg, names)
			c, ok := came.(int64)
			return ok && err == nil && fits(c, n), err
		}
	}
	tests = map[string]func(arg, came any, names, bound map[string]any) (bool, error){
		"at_least": bound(func(came, least int64) bool { return came >= least }),
		"at_most":  bound(func(came, most int64) bool { return came <= most }),
		"size": func(arg, came any, names, bound map[string]any) (bool, error) {
			switch came := came.(type) {
			case []byte:
				return match(arg, int64(len(came)), names, bound)
			case string:
				return match(arg, int64(len(came)), names, bound)
			}
			return false, nil
		},
		"among": func(arg, came any, names, bound map[string]any) (bool, error) {
			for _, p := range asList(arg) {
				if ok, err := match(p, came, names, bound); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		},
		"not": func(arg, came any, names, _ map[string]any) (bool, error) {
			ok, err := match(arg, came, names, map[string]any{})
			return !ok, err
		},
		"holds": func(arg, came any, names, bound map[string]any) (bool, error) {
			b, ok := came.([]byte)
			var v any
			if !ok || decoding.Unmarshal(b, &v) != nil {
				return false, nil
			}
			return match(arg, v, names, bound)
		},
		"map": matchMap,
	}
}

// matchMap is for maps with at least the entries of the pattern. An entry with null must be absent.
func matchMap(arg, came any, names, bound map[string]any) (bool, error) {
	m, ok := came.(map[any]any)
	entries, isObject := arg.(map[string]any)
	if !isObject {
		return false, fmt.Errorf("map: %s is no object", show(arg))
	}
	if !ok {
		return false, nil
	}
	for k, p := range entries {
		var key any = k
		if n, err := strconv.ParseInt(k, 10, 64); err == nil {
			key = n
		}
		v, there := m[key]
		if p == nil || !there {
			if (p == nil) == there {
				return false, nil
			}
			continue
		}
		if ok, err := match(p, v, names, bound); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}
