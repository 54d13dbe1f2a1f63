// Package kubernetes holds the manifests to the types of Kubernetes, and nfplugin to the kubelet, whole
// and its device manager alone; package cluster has a control plane take the manifests. It is a module
// of its own, which make test-kubernetes builds.
package kubernetes
