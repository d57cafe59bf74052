package cluster

import (
	"strings"

	"github.com/asterisque-go/asterisque"
)

// maxKey is the maximum length of a key in bytes. With its subject it stays far below the limit of
// NATS.
const maxKey = 200

// keyBytes are the valid bytes of a key, as in all NATS buckets.
const keyBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_=."

// checkKey returns an error if a key cannot be claimed.
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
