package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/asterisque-go/asterisque"
)

// health asks for an unknown part, and sees its change to not serving.
func health(ctx context.Context, c *caller) error {
	part := rand.Text()
	q := asterisque.HealthQuery{Parts: []string{"", part}}
	unknown := map[string]asterisque.HealthState{"": asterisque.HealthServing, part: asterisque.HealthUnknown}
	if err := returns(unknown)(asterisque.CheckHealth.Call(ctx, c, q)); err != nil {
		return err
	}
	watch, err := asterisque.WatchHealth.Open(ctx, c, q)
	if err != nil {
		return err
	}
	defer watch.Abort(nil)
	if err := returns(unknown)(watch.Recv(ctx)); err != nil {
		return err
	}
	if err := returns(part)(falter.Call(ctx, c, part)); err != nil {
		return err
	}
	if err := returns(map[string]asterisque.HealthState{part: asterisque.HealthNotServing})(watch.Recv(ctx)); err != nil {
		return err
	}
	all, err := asterisque.CheckHealth.Call(ctx, c, asterisque.HealthQuery{})
	return returns(asterisque.HealthNotServing)(all[part], err)
}

// watchLeave watches the health of a peer until that has left. The returned function checks the
// reports.
func watchLeave(ctx context.Context, c *caller) (left func() error, err error) {
	if c.codec == "raw" {
		return func() error { return nil }, nil
	}
	watch, err := asterisque.WatchHealth.Open(ctx, c, asterisque.HealthQuery{Parts: []string{""}})
	if err != nil {
		return nil, err
	}
	whole := func(s asterisque.HealthState) error {
		return returns(map[string]asterisque.HealthState{"": s})(watch.Recv(ctx))
	}
	if err := whole(asterisque.HealthServing); err != nil {
		return nil, err
	}
	return func() error {
		if err := whole(asterisque.HealthNotServing); err != nil {
			return fmt.Errorf("the health of a peer that leaves: %w", err)
		}
		if _, err := watch.Recv(ctx); err != io.EOF {
			return fmt.Errorf("the end of its health: %w", err)
		}
		_, err := watch.Result(ctx)
		return err
	}, nil
}
