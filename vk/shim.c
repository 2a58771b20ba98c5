// See shim.h. Structure layouts and enum values are those of the Vulkan 1.2
// and 1.3 specification, which never change once published.
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim_abi.h"
#include "shim_os.h"

typedef void *(*PFN_gipa)(void *, const char *);

struct message { struct message *next; char text[]; };

enum { MAX_MESSAGES = 1000 };

struct vkx_inst {
    PFN_gipa gipa;
    void *handle;
    uint64_t messenger;
    int32_t validating; // the validation layer is on
    void *(*gdpa)(void *, const char *);
    void (*destroy)(void *, const void *);
    void (*features2)(void *, void *);
    void (*properties2)(void *, void *);
    void (*memory2)(void *, void *);
    void (*families)(void *, uint32_t *, void *);
    void (*external_buffer)(void *, const void *, void *);
    int32_t (*extensions)(void *, const char *, uint32_t *, void *);
    int32_t (*create_device)(void *, const void *, const void *, void **);
    void (*destroy_messenger)(void *, uint64_t, const void *);
    vkx_lock lock; // guards the three fields below
    struct message *first, **last;
    uint32_t count, dropped;
};

void *vkx_load(const char *path, char *why, size_t why_size) {
    return library_symbol(path, "vkGetInstanceProcAddr", why, why_size);
}

uint32_t vkx_api_version(void *gipa) {
    int32_t (*f)(uint32_t *) = ((PFN_gipa)gipa)(NULL, "vkEnumerateInstanceVersion");
    uint32_t v = 1u << 22; // Vulkan 1.0 has no such function
    if (f && f(&v) != 0) return 0;
    return v;
}

int32_t vkx_has_layer(void *gipa, const char *name) {
    int32_t (*f)(uint32_t *, void *) = ((PFN_gipa)gipa)(NULL, "vkEnumerateInstanceLayerProperties");
    uint32_t n = 0;
    if (!f || f(&n, NULL) != 0 || n == 0) return 0;
    LayerProperties *p = calloc(n, sizeof *p);
    int32_t found = 0;
    if (p && f(&n, p) >= 0)
        for (uint32_t i = 0; i < n; i++) found |= !strcmp(p[i].name, name);
    free(p);
    return found;
}

// on_message keeps warnings and errors until Go asks for them. It runs on the
// thread that made the Vulkan call and must not call Vulkan.
static uint32_t on_message(uint32_t severity, uint32_t types, const void *data, void *user) {
    (void)types;
    vkx_inst *in = user;
    const MessengerCallbackData *d = data;
    const char *id = d->id_name ? d->id_name : "", *text = d->text ? d->text : "";
    const char *level = severity >= 0x1000 ? "error" : "warning";
    size_t size = strlen(id) + strlen(text) + strlen(level) + 8;
    struct message *m = malloc(sizeof *m + size);
    lock_take(&in->lock);
    if (!m || in->count >= MAX_MESSAGES) {
        in->dropped++;
        free(m);
    } else {
        m->next = NULL;
        snprintf(m->text, size, "%s: %s: %s", level, id, text);
        *in->last = m;
        in->last = &m->next;
        in->count++;
    }
    lock_give(&in->lock);
    return 0;
}

int32_t vkx_next_message(vkx_inst *in, char *out, size_t size) {
    lock_take(&in->lock);
    struct message *m = in->first;
    if (m) {
        in->first = m->next;
        in->count--;
        if (!in->first) in->last = &in->first;
    }
    lock_give(&in->lock);
    if (!m) return 0;
    snprintf(out, size, "%s", m->text);
    free(m);
    return 1;
}

uint32_t vkx_dropped_messages(vkx_inst *in) {
    lock_take(&in->lock);
    uint32_t n = in->dropped;
    in->dropped = 0;
    lock_give(&in->lock);
    return n;
}

static void load_instance(vkx_inst *in) {
    void *h = in->handle;
    in->gdpa = in->gipa(h, "vkGetDeviceProcAddr");
    in->destroy = in->gipa(h, "vkDestroyInstance");
    in->features2 = in->gipa(h, "vkGetPhysicalDeviceFeatures2");
    in->properties2 = in->gipa(h, "vkGetPhysicalDeviceProperties2");
    in->memory2 = in->gipa(h, "vkGetPhysicalDeviceMemoryProperties2");
    in->families = in->gipa(h, "vkGetPhysicalDeviceQueueFamilyProperties");
    in->external_buffer = in->gipa(h, "vkGetPhysicalDeviceExternalBufferProperties");
    in->extensions = in->gipa(h, "vkEnumerateDeviceExtensionProperties");
    in->create_device = in->gipa(h, "vkCreateDevice");
    in->destroy_messenger = in->gipa(h, "vkDestroyDebugUtilsMessengerEXT");
}

vkx_inst *vkx_create_instance(void *gipa, uint32_t api, int32_t validate, int32_t debug_utils,
                              int32_t *result, const char **call) {
    vkx_inst *in = calloc(1, sizeof *in);
    *call = "vkCreateInstance";
    *result = -1;
    if (!in) return NULL;
    in->gipa = (PFN_gipa)gipa;
    in->last = &in->first;
    in->validating = validate != 0;
    lock_make(&in->lock);

    static const char *layers[] = {"VK_LAYER_KHRONOS_validation"};
    static const int32_t enables[] = {4}; // synchronization validation
    const char *exts[2];
    uint32_t n_exts = 0;
    if (debug_utils) exts[n_exts++] = "VK_EXT_debug_utils";
    if (validate) exts[n_exts++] = "VK_EXT_validation_features";
    MessengerCreateInfo mci = {.sType = ST_MESSENGER, .severity = 0x1100, .types = 7,
                               .callback = on_message, .user = in};
    ValidationFeatures vf = {.sType = ST_VALIDATION_FEATURES, .pNext = &mci, .n_enabled = 1, .enabled = enables};
    ApplicationInfo app = {.sType = 0, .name = "vksplat", .engine = "vksplat", .api = api};
    InstanceCreateInfo ci = {.sType = 1, .pNext = validate ? &vf : NULL, .app = &app,
                             .n_layers = validate ? 1 : 0, .layers = layers,
                             .n_exts = n_exts, .exts = exts};
    int32_t (*create)(const void *, const void *, void **) = in->gipa(NULL, "vkCreateInstance");
    *result = create ? create(&ci, NULL, &in->handle) : -3;
    if (*result != 0) {
        vkx_free_instance(in);
        return NULL;
    }
    load_instance(in);
    if (validate && debug_utils) {
        *call = "vkCreateDebugUtilsMessengerEXT";
        int32_t (*messenger)(void *, const void *, const void *, uint64_t *) =
            in->gipa(in->handle, "vkCreateDebugUtilsMessengerEXT");
        *result = messenger ? messenger(in->handle, &mci, NULL, &in->messenger) : -3;
        if (*result != 0) {
            vkx_free_instance(in);
            return NULL;
        }
    }
    return in;
}

void *vkx_instance_handle(vkx_inst *in) { return in->handle; }

void vkx_free_instance(vkx_inst *in) {
    if (in->messenger) in->destroy_messenger(in->handle, in->messenger, NULL);
    if (in->handle) in->destroy(in->handle, NULL);
    for (struct message *m = in->first; m;) {
        struct message *next = m->next;
        free(m);
        m = next;
    }
    lock_free(&in->lock);
    free(in);
}

int32_t vkx_device_extensions(vkx_inst *in, void *pd, char (**names)[256], uint32_t *n) {
    *names = NULL;
    *n = 0;
    int32_t r = in->extensions(pd, NULL, n, NULL);
    if (r != 0 || *n == 0) return r;
    ExtensionProperties *p = calloc(*n, sizeof *p);
    char (*out)[256] = calloc(*n, sizeof *out);
    r = p && out ? in->extensions(pd, NULL, n, p) : -1;
    if (r >= 0) {
        for (uint32_t i = 0; i < *n; i++) memcpy(out[i], p[i].name, 256);
        *names = out;
        r = 0;
    } else {
        free(out);
        *n = 0;
    }
    free(p);
    return r;
}

void vkx_query(vkx_inst *in, void *pd, const vkx_exts *have, vkx_caps *out) {
    memset(out, 0, sizeof *out);
    Maintenance4Properties m4 = {.sType = ST_M4_PROPERTIES};
    MemoryHostProperties mh = {.sType = ST_MEMORY_HOST_PROPERTIES};
    PCIBusProperties pci = {.sType = ST_PCI_BUS_PROPERTIES};
    SubgroupControlProperties sp = {.sType = ST_SUBGROUP_CONTROL_PROPERTIES};
    IntegerDotProperties dp = {.sType = ST_INTEGER_DOT_PROPERTIES};
    Vulkan12Properties p12 = {.sType = ST_V12_PROPERTIES};
    Vulkan11Properties p11 = {.sType = ST_V11_PROPERTIES, .pNext = &p12};
    Properties2 p2 = {.sType = ST_PROPERTIES2, .pNext = &p11};
    if (have->subgroup_control) { sp.pNext = p2.pNext; p2.pNext = &sp; }
    if (have->maintenance4) { m4.pNext = p2.pNext; p2.pNext = &m4; }
    if (have->memory_host) { mh.pNext = p2.pNext; p2.pNext = &mh; }
    if (have->pci_bus) { pci.pNext = p2.pNext; p2.pNext = &pci; }
    if (have->integer_dot) { dp.pNext = p2.pNext; p2.pNext = &dp; }
    in->properties2(pd, &p2);

    AtomicFloatFeatures af = {.sType = ST_ATOMIC_FLOAT};
    ExecutableFeatures ef = {.sType = ST_EXECUTABLE_FEATURES};
    SubgroupControlFeatures sf = {.sType = ST_SUBGROUP_CONTROL_FEATURES};
    IntegerDotFeatures df = {.sType = ST_INTEGER_DOT_FEATURES};
    Vulkan12Features f12 = {.sType = ST_V12_FEATURES};
    Vulkan11Features f11 = {.sType = ST_V11_FEATURES, .pNext = &f12};
    Features2 f2 = {.sType = ST_FEATURES2, .pNext = &f11};
    if (have->subgroup_control) { sf.pNext = f2.pNext; f2.pNext = &sf; }
    if (have->atomic_float) { af.pNext = f2.pNext; f2.pNext = &af; }
    if (have->executable_info) { ef.pNext = f2.pNext; f2.pNext = &ef; }
    if (have->integer_dot) { df.pNext = f2.pNext; f2.pNext = &df; }
    in->features2(pd, &f2);

    memcpy(out->device_uuid, p11.device_uuid, 16);
    memcpy(out->driver_uuid, p11.driver_uuid, 16);
    memcpy(out->driver_name, p12.driver_name, 256);
    memcpy(out->driver_info, p12.driver_info, 256);
    out->max_memory_allocation = p11.max_allocation;
    out->max_buffer = m4.max_buffer;
    out->subgroup_size = p11.subgroup_size;
    out->subgroup_stages = p11.subgroup_stages;
    out->subgroup_ops = p11.subgroup_ops;
    out->min_subgroup = sp.min_size;
    out->max_subgroup = sp.max_size;
    out->max_workgroup_subgroups = sp.max_workgroup;
    out->required_stages = sp.required_stages;
    out->timeline = f12.timelineSemaphore;
    out->scalar_layout = f12.scalarBlockLayout;
    out->host_query_reset = f12.hostQueryReset;
    out->subgroup_control = sf.control;
    out->full_subgroups = sf.full;
    out->float16 = f12.shaderFloat16;
    out->int8 = f12.shaderInt8;
    out->int16 = f2.b[FEATURE_INT16];
    out->int64 = f2.b[FEATURE_INT64];
    out->storage16 = f11.storageBuffer16BitAccess;
    out->storage8 = f12.storageBuffer8BitAccess;
    out->int64_atomics = f12.shaderBufferInt64Atomics;
    out->f32_buffer_atomics = af.buffer_f32;
    out->f32_buffer_add = af.buffer_f32_add;
    out->f32_shared_add = af.shared_f32_add;
    out->executable_info = ef.info;
    out->packed_dot = df.dot;
    out->packed_dot_fast = df.dot && dp.packed_unsigned;
    out->host_align = mh.min_align;
    out->has_pci = have->pci_bus;
    out->pci[0] = pci.domain, out->pci[1] = pci.bus, out->pci[2] = pci.device, out->pci[3] = pci.function;
}

void vkx_query_memory(vkx_inst *in, void *pd, int32_t budget, vkx_memory *out) {
    memset(out, 0, sizeof *out);
    MemoryBudget mb = {.sType = ST_MEMORY_BUDGET};
    MemoryProperties2 m = {.sType = ST_MEMORY_PROPERTIES2, .pNext = budget ? &mb : NULL};
    in->memory2(pd, &m);
    out->n_types = m.n_types;
    out->n_heaps = m.n_heaps;
    for (uint32_t i = 0; i < 32; i++) {
        out->type_flags[i] = m.types[i].flags;
        out->type_heap[i] = m.types[i].heap;
    }
    for (uint32_t i = 0; i < 16; i++) {
        out->heap_size[i] = m.heaps[i].size;
        out->heap_flags[i] = m.heaps[i].flags;
        out->heap_budget[i] = mb.budget[i];
        out->heap_usage[i] = mb.usage[i];
    }
}

uint32_t vkx_families(vkx_inst *in, void *pd, vkx_family *out, uint32_t max) {
    FamilyProperties p[32];
    uint32_t n = 32;
    memset(p, 0, sizeof p);
    in->families(pd, &n, p);
    if (n > max) n = max;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (vkx_family){i, p[i].flags, p[i].count, p[i].timestamp_bits};
    return n;
}

// vkx_can_import reports whether buffers of that usage can lie in memory of the host that is imported.
int32_t vkx_can_import(vkx_inst *in, void *pd, uint32_t usage) {
    enum { DEDICATED_ONLY = 1, IMPORTABLE = 4 };
    ExternalBufferInfo info = {.sType = ST_EXTERNAL_BUFFER_INFO, .usage = usage, .handle_type = HOST_ALLOCATION};
    ExternalBufferProperties p = {.sType = ST_EXTERNAL_BUFFER_PROPERTIES};
    if (!in->external_buffer) return 0;
    in->external_buffer(pd, &info, &p);
    return (p.features & (DEDICATED_ONLY | IMPORTABLE)) == IMPORTABLE;
}

void *vkx_take_host(size_t size, size_t align) { return host_take(size, align); }
void vkx_give_host(void *p, size_t size) { host_give(p, size); }

// for shim_device.c
int32_t vkx_new_device(vkx_inst *in, void *pd, const void *ci, void **out) {
    return in->create_device(pd, ci, NULL, out);
}
void *vkx_device_proc(vkx_inst *in, void *dev, const char *name) { return in->gdpa(dev, name); }
int32_t vkx_validating(vkx_inst *in) { return in->validating; }
