package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// suite is spec/scenarios.json.
type suite struct {
	Version   int               `json:"version"`
	Sequences map[string][]step `json:"sequences"` // steps that several scenarios have
	Scenarios []scenario        `json:"scenarios"`
}

// scenario is one session, or several, that test a rule.
type scenario struct {
	Name string `json:"name"`
	// Section is the slug of the heading in spec/protocol.md.
	Section string `json:"section"`
	// Role is "connects" or "accepts", the role of the player, or "" for either.
	Role string `json:"role"`
	// Needs are the required features of the peer.
	Needs []string `json:"needs"`
	// Sync has changed fields of the player's Sync.
	Sync map[string]any `json:"sync"`
	// Handshake is false if it is among the steps.
	Handshake *bool  `json:"handshake"`
	Steps     []step `json:"steps"`
}

// step is one act of the player, or one required act of the peer. It has one key for the kind of
// act, and may have further ones.
type step map[string]any

// load reads a suite, and finds mistakes without playing it.
func load(file []byte) (*suite, error) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	d.DisallowUnknownFields()
	var s suite
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.Version != 1 {
		return nil, fmt.Errorf("version %d of the scenarios; this program plays version 1", s.Version)
	}
	names := map[string]bool{}
	for _, sc := range s.Scenarios {
		if names[sc.Name] {
			return nil, fmt.Errorf("%q is there twice", sc.Name)
		}
		names[sc.Name] = true
		if err := s.check(sc); err != nil {
			return nil, fmt.Errorf("%q: %w", sc.Name, err)
		}
	}
	return &s, nil
}

func (s *suite) check(sc scenario) error {
	switch sc.Role {
	case "", "connects", "accepts":
	default:
		return fmt.Errorf("role %q", sc.Role)
	}
	if sc.Name == "" || sc.Section == "" || len(sc.Steps) == 0 {
		return fmt.Errorf("name, section and steps are needed")
	}
	for _, st := range sc.Steps {
		if _, err := st.act(); err != nil {
			return err
		}
		if name, ok := st["do"].(string); ok && s.Sequences[name] == nil {
			return fmt.Errorf("there is no sequence %q", name)
		}
	}
	return nil
}

// act returns the act of a step.
func (st step) act() (stepAction, error) {
	for key, a := range acts {
		if _, ok := st[key]; ok {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s is no step", show(map[string]any(st)))
}

// matching returns the scenarios that match a regular expression, by name or section.
func (s *suite) matching(expr string) ([]scenario, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	var list []scenario
	for _, sc := range s.Scenarios {
		if re.MatchString(sc.Section + ": " + sc.Name) {
			list = append(list, sc)
		}
	}
	return list, nil
}
