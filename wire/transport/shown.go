package transport

import (
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ShowURL returns the parts of a URL that may appear in a log or in an error: its scheme, host and
// path. User info, query and fragment may be secrets, and are left out; "?…" says that there was a
// query or a fragment. In a text that is no URL, everything before the last '@' is left out, too. A
// text without any of these, such as "host:port", is returned as it is.
func ShowURL(rawURL string) string {
	p := splitURL(rawURL)
	if p.tail != "" {
		p.place += "?…"
	}
	return p.scheme + p.place
}

// HideURL returns err with a text from which the secrets of the URL are removed: its user info, and
// the values of its query and its fragment. [errors.Is] and [errors.As] look into err, but not
// [errors.Unwrap]; so an error that errors.As finds, such as a *[url.Error], may still have the
// secrets in its own text. It returns err itself if the URL has no secrets, and nil for nil.
//
// A secret of less than 4 bytes is replaced only where the URL as a whole, its user info or its
// query appears in the text: everywhere else it may be a part of something else.
func HideURL(err error, rawURL string) error {
	p := splitURL(rawURL)
	if err == nil || p.user == "" && p.tail == "" {
		return err
	}
	return redactedError{err, p.replacer(rawURL).Replace(err.Error())}
}

// redactedError is an error with another text.
type redactedError struct {
	cause error
	text  string
}

func (h redactedError) Error() string        { return h.text }
func (h redactedError) Is(target error) bool { return errors.Is(h.cause, target) }
func (h redactedError) As(target any) bool   { return errors.As(h.cause, target) }

// urlParts are the parts of a text that should be a URL.
type urlParts struct {
	scheme string // with the characters between it and the place
	user   string // without the '@'
	place  string // host and path
	tail   string // query and fragment
}

var beforeHost = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:)?//`)

// splitURL splits a text, and treats too much as a secret rather than too little: if the text is no
// URL, the cause may be a '/', '?' or '#' within a password.
func splitURL(rawURL string) (p urlParts) {
	p.scheme = beforeHost.FindString(rawURL)
	p.place = rawURL[len(p.scheme):]
	end := len(p.place) // end of the part that may have user info
	_, err := url.Parse(rawURL)
	switch {
	case err != nil:
	case p.scheme != "":
		end = indexOr(p.place, "/?#", end)
	case strings.HasPrefix(rawURL, "unix:"):
		end = 0 // the rest is a path, such as @name
	default:
		end = indexOr(p.place, "?#", end)
	}
	if at := strings.LastIndexByte(p.place[:end], '@'); at > 0 {
		p.user, p.place = p.place[:at], p.place[at+1:]
	}
	end = indexOr(p.place, "?#", len(p.place))
	p.place, p.tail = p.place[:end], p.place[end:]
	return p
}

// indexOr returns the position of the first of these characters in s, or otherwise.
func indexOr(s, chars string, otherwise int) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return otherwise
}

// replacer replaces the URL by its shown form, and its secrets by "…".
func (p urlParts) replacer(rawURL string) *strings.Replacer {
	shown := ShowURL(rawURL)
	texts := map[string]string{rawURL: shown}
	if u, err := url.Parse(rawURL); err == nil {
		texts[u.String()] = shown
	}
	if name, _, _ := strings.Cut(p.user, ":"); p.user != "" {
		for _, user := range []string{p.user, name + ":***", name + ":xxxxx"} {
			// the two of Go's library
			texts["//"+user+"@"] = "//"
		}
	}
	if query, _ := p.queryAndFragment(); query != "" {
		texts["?"+query] = "?…"
	}
	for _, s := range p.secrets() {
		texts[s] = "…"
	}
	var pairs []string
	for _, s := range slices.SortedFunc(maps.Keys(texts), longestFirst) {
		quoted := strconv.Quote(s)
		pairs = append(pairs, s, texts[s], quoted[1:len(quoted)-1], texts[s])
	}
	return strings.NewReplacer(pairs...)
}

func longestFirst(a, b string) int { return cmp.Compare(len(b), len(a)) }

func (p urlParts) queryAndFragment() (query, fragment string) {
	query, fragment, _ = strings.Cut(p.tail, "#")
	return strings.TrimPrefix(query, "?"), fragment
}

// secrets returns the parts that must not be shown, in each form in which a text may have them.
func (p urlParts) secrets() (all []string) {
	name, password, _ := strings.Cut(p.user, ":")
	query, fragment := p.queryAndFragment()
	raw := []string{p.user, name, password, query, fragment}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		if _, value, ok := strings.Cut(pair, "="); ok {
			pair = value
		}
		raw = append(raw, pair)
	}
	basic := base64.StdEncoding.EncodeToString([]byte(unescaped(name) + ":" + unescaped(password)))
	for _, s := range append(raw, basic) {
		for _, form := range forms(s) {
			if len(form) >= shortest {
				all = append(all, form)
			}
		}
	}
	return all
}

// shortest is the minimum number of bytes of a secret that is searched for by itself.
const shortest = 4

// forms returns s, which may have escapes, and its forms without and with other escapes.
func forms(s string) []string {
	all := []string{s}
	for _, text := range []string{unescaped(s), strings.ReplaceAll(unescaped(s), "+", " ")} {
		all = append(all, text, url.QueryEscape(text), url.PathEscape(text), url.User(text).String())
	}
	return all
}

// unescaped returns s itself if it has no valid escapes.
func unescaped(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}
