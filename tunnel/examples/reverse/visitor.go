package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// visitor is a user with a browser, and only the address of the public node.
type visitor struct {
	address string
	client  *http.Client
	t       *teller
}

func newVisitor(address string, t *teller) *visitor {
	return &visitor{address: address, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: kept}}, t: t}
}

// visit requests all pages.
func (v *visitor) visit(ctx context.Context, volumes int) error {
	defer v.client.CloseIdleConnections()
	for _, look := range []func(context.Context) error{
		v.knock, v.bringFriends, v.watchTheClock, func(ctx context.Context) error { return v.borrow(ctx, volumes) },
	} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// get requests a page, and fails unless its status is OK.
func (v *visitor) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		answer.Body.Close()
		return nil, fmt.Errorf("GET /%s: %s: %s", path, answer.Status, strings.TrimSpace(string(text)))
	}
	return answer, nil
}

// page is get with the whole text.
func (v *visitor) page(ctx context.Context, path string) (text string, took time.Duration, err error) {
	begin := time.Now()
	answer, err := v.get(ctx, path)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return string(all), time.Since(begin), err
}

// knock requests the first page.
func (v *visitor) knock(ctx context.Context) error {
	text, took, err := v.page(ctx, "")
	if err != nil {
		return err
	}
	v.t.tell("visitor ──►", "GET %s", v.address)
	v.t.tell("visitor ◄──", "%q, after %s", text, roughly(took))
	return nil
}

// bringFriends makes many concurrent requests.
func (v *visitor) bringFriends(ctx context.Context) error {
	const friends = 50
	all, errs := make([]time.Duration, friends), make([]error, friends)
	var wg sync.WaitGroup
	for i := range friends {
		wg.Go(func() { _, all[i], errs[i] = v.page(ctx, "") })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	v.t.tell("visitor ◄──", "brings %d friends at once: the last one is in after %s", friends, roughly(slices.Max(all)))
	return nil
}

// watchTheClock reads a page that is sent in pieces.
func (v *visitor) watchTheClock(ctx context.Context) error {
	answer, err := v.get(ctx, "clock")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines, heard := bufio.NewScanner(answer.Body), 0
	for lines.Scan() {
		if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			heard++
			v.t.tell("visitor ◄──", "hears the clock: %s", event)
		}
	}
	if lines.Err() == nil && heard != strokes {
		return fmt.Errorf("the clock struck %d of %d times", heard, strokes)
	}
	return lines.Err()
}

// borrow makes a large download, and clicks meanwhile.
func (v *visitor) borrow(ctx context.Context, volumes int) error {
	v.t.tell("visitor ──►", "downloads %d MiB, which the gateway gives priority %d, and clicks around meanwhile", volumes, bulk)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- v.download(ctx, volumes) }()
	clicks, err := v.click(ctx, done)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	slices.Sort(clicks)
	v.t.tell("visitor ◄──", "%d clicks: half of them within %s, 99 of 100 within %s",
		len(clicks), roughly(clicks[len(clicks)/2]), roughly(clicks[len(clicks)*99/100]))
	v.t.tell("visitor ◄──", "all of the %d MiB, after %s: %.0f MB/s, and their SHA-256 is right",
		volumes, roughly(took), float64(volumes<<20)/1e6/took.Seconds())
	return nil
}

// click requests a page repeatedly, until done, and returns the duration of each request.
func (v *visitor) click(ctx context.Context, done <-chan error) (all []time.Duration, err error) {
	for {
		_, took, err := v.page(ctx, "")
		if err != nil {
			return nil, err
		}
		all = append(all, took)
		select {
		case err := <-done:
			return all, err
		default:
		}
	}
}

// download reads the number of MiB, and compares their SHA-256 with the one behind them.
func (v *visitor) download(ctx context.Context, volumes int) error {
	answer, err := v.get(ctx, fmt.Sprint("library/", volumes))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, answer.Body)
	if err != nil {
		return err
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)), answer.Trailer.Get("Digest"); n != int64(volumes)<<20 || got != want {
		return fmt.Errorf("of %d MiB there came %d bytes with SHA-256 %s instead of %s", volumes, n, got, want)
	}
	return nil
}

// knockInVain requires that the machine does not answer.
func (v *visitor) knockInVain(ctx context.Context) error {
	defer v.client.CloseIdleConnections()
	_, _, err := v.page(ctx, "")
	if err == nil || ctx.Err() != nil {
		return errors.Join(errors.New("the machine has left, and should not answer"), ctx.Err())
	}
	v.t.tell("visitor ◄──", "%v", err)
	return nil
}
