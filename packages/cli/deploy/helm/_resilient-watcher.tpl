{{- /*
Copy this file into the folder templates/ of your chart. It only defines templates, and renders nothing by itself.

A native sidecar for the pod template of any chart:

  initContainers:
    {{- include "resilient-watcher.sidecar" (dict
      "image" "resilient-watcher:0.1.0"
      "volume" "conf"
      "path" "/etc/nginx/conf.d"
      "args" (list "--signal=HUP" "--process=nginx")) | nindent 4 }}

`--signal` with `--process` reaches a process of another container only with `shareProcessNamespace: true` in the pod.
A second include in the same pod needs another "name" (default reload) and "port" (default 9533). "resources" replaces the
default requests and limits.

Lint what the chart renders: helm template . | resilient-watcher doctor --manifest -
*/ -}}
{{- define "resilient-watcher.sidecar" -}}
{{- $port := .port | default 9533 -}}
- name: {{ .name | default "reload" | quote }}
  image: {{ .image | quote }}
  restartPolicy: Always
  args:
    - watch
    - {{ .path | quote }}
    - --listen=:{{ $port }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  # The containers of the pod are started after the first check, so they have read nothing before it.
  startupProbe:
    httpGet: { path: /readyz, port: {{ $port }} }
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    httpGet: { path: /livez, port: {{ $port }} }
    periodSeconds: 30
  resources:
    {{- .resources | default (dict "requests" (dict "cpu" "5m" "memory" "64Mi") "limits" (dict "memory" "128Mi")) | toYaml | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: {{ .volume | quote }}
      mountPath: {{ .path | quote }}
      readOnly: true
{{- end }}
{{- /*
The controller of deploy/kubernetes/sync-pods.yaml, as a template of any chart:

  {{- include "resilient-watcher.sync-pods" (dict
    "image" "resilient-watcher:0.1.0"
    "namespace" .Release.Namespace
    "secrets" true) }}

"args" are further flags; with "--namespace=…" among them, set "allNamespaces" to false.
*/ -}}
{{- define "resilient-watcher.sync-pods" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: sync-pods
  namespace: {{ .namespace | quote }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ printf "sync-pods-%s" .namespace | quote }}
rules:
  - apiGroups: ['']
    resources: [configmaps{{ if .secrets }}, secrets{{ end }}]
    verbs: [list, watch]
  - apiGroups: ['']
    resources: [pods]
    verbs: [list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ printf "sync-pods-%s" .namespace | quote }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ printf "sync-pods-%s" .namespace | quote }}
subjects:
  - kind: ServiceAccount
    name: sync-pods
    namespace: {{ .namespace | quote }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: sync-pods
  namespace: {{ .namespace | quote }}
spec:
  replicas: {{ .replicas | default 2 }}
  selector:
    matchLabels: { app.kubernetes.io/name: sync-pods }
  template:
    metadata:
      labels: { app.kubernetes.io/name: sync-pods }
    spec:
      serviceAccountName: sync-pods
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: sync-pods
          image: {{ .image | quote }}
          args:
            - sync-pods
            {{- if ne (toString .allNamespaces) "false" }}
            - --all-namespaces
            {{- end }}
            {{- if .secrets }}
            - --secrets
            {{- end }}
            - --listen=:9533
            - --json
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
          ports:
            - { name: metrics, containerPort: 9533 }
          readinessProbe:
            httpGet: { path: /readyz, port: metrics }
          livenessProbe:
            httpGet: { path: /livez, port: metrics }
          resources:
            requests: { cpu: 10m, memory: 96Mi }
            limits: { memory: 256Mi }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
{{- end }}
