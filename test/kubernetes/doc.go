// Package kubernetes holds the manifests to the types of Kubernetes. It is a module of its own, which
// make test-kubernetes builds.
package kubernetes
