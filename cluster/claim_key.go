package cluster

import (
	"strings"

	"github.com/asterisque-go/asterisque"
)

// maxKey is the longest key in bytes. With its subject it stays far below what NATS accepts.
const maxKey = 200

// keyBytes is what keys may consist of, as in all buckets of NATS.
const keyBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_=."

// checkKey returns what is wrong with a key that is to be claimed.
func checkKey(key string) error {
	fault := ""
	switch {
	case key == "":
		fault = "it is empty"
	case len(key) > maxKey:
		return asterisque.ErrBadParams.Withf("the key %q... has %d bytes, and %d are the most", key[:16], len(key), maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(keyBytes, r) }):
		fault = "it may have letters and digits of ASCII, and - / _ = ."
	case strings.ContainsAny(key[:1]+key[len(key)-1:], "./"):
		fault = "it begins or ends with a dot or a slash"
	case strings.Contains(key, ".."):
		fault = "it has two dots in a row, which no subject of NATS may have"
	default:
		return nil
	}
	return asterisque.ErrBadParams.Withf("the key %q cannot be claimed: %s", key, fault)
}
