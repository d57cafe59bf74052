package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The board shows the events since the last look.
func TestBoard_SinceLastLook(t *testing.T) {
	replica := part{name: ordersName, id: "orders-a", instance: "first"}
	depot := part{name: depotsName, id: "agent", instance: "first", agents: 7}
	var b board
	now := time.Now()
	b.take(now, []answer{
		{part: replica, figures: figures{Served: 100, Answered: 10, Made: 12}},
		{part: depot, figures: figures{Sessions: 21}},
	})
	require.Equal(t, []string{
		"orders-a       there            -        -        -        2       0  0 with agents",
		"agents         7                -        -        -        0       0  21 with replicas",
		"NATS           there",
	}, texts(b.rows(false)))

	b.take(now.Add(2*time.Second), []answer{
		{part: replica, figures: figures{Served: 300, Answered: 30, Failed: 2, Made: 33, P99: 1500 * time.Millisecond, Sessions: 7}},
		{part: depot, err: errors.New("no answer")},
	})
	require.Equal(t, []string{
		"orders-a       there          100       10     1.5s        1       2  7 with agents",
		"agent          silent",
		"NATS           away",
	}, texts(b.rows(true)))

	replica.instance = "second"
	b.take(now.Add(4*time.Second), []answer{{part: replica, figures: figures{Served: 1}}})
	require.Equal(t, []string{
		"orders-a       there            -        -        -        0       0  0 with agents",
		"agent          away",
		"NATS           there",
	}, texts(b.rows(false)))
}

func texts(rows []row) (all []string) {
	for _, r := range rows {
		all = append(all, r.String())
	}
	return all
}
