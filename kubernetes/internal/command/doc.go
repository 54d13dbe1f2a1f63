// Package command has what the commands of a node share: exit codes, settings from the environment, and
// probes by HTTP.
package command
