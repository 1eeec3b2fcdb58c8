/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. A key is index << 8 | generation. */
#include "swverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

SWV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int err = swv_fault_verb(swv_ctx(context), SWV_VERB_ALLOC_PD);
    struct swv_pd *pd = err == 0 ? calloc(1, sizeof(*pd)) : NULL;

    if (pd == NULL) {
        errno = err != 0 ? err : ENOMEM;
        return NULL;
    }
    pd->ib.context = context;
    return &pd->ib;
}

SWV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct swv_pd *pd = (struct swv_pd *)ibpd;
    struct swv_ctx *c = swv_ctx(ibpd->context);
    uint32_t refs;

    swv_lock(c);
    refs = pd->refs;
    swv_unlock(c);
    if (refs != 0)
        return EBUSY;
    free(pd);
    return 0;
}

static int table_grow(struct swv_ctx *c)
{
    uint32_t n = c->num_mrs != 0 ? c->num_mrs * 2 : 64;
    struct swv_mr **mrs = realloc(c->mrs, n * sizeof(*mrs));
    uint8_t *gen;

    if (mrs == NULL || n > 1 << 24)
        return -ENOMEM;
    c->mrs = mrs;
    gen = realloc(c->mr_gen, n);
    if (gen == NULL)
        return -ENOMEM;
    c->mr_gen = gen;
    for (uint32_t i = c->num_mrs; i < n; i++) {
        mrs[i] = NULL;
        gen[i] = 0;
    }
    c->num_mrs = n;
    return 0;
}

/* Slot 0 stays empty, so that no key is zero. */
static uint32_t slot_find(const struct swv_ctx *c)
{
    for (uint32_t n = 0; n < c->num_mrs; n++) {
        uint32_t i = (c->mr_hint + n) % c->num_mrs;

        if (i != 0 && c->mrs[i] == NULL)
            return i;
    }
    return 0;
}

/* Goes round the table, so that a key that was freed is not used again soon. */
static int table_insert(struct swv_ctx *c, struct swv_mr *mr)
{
    uint32_t i = slot_find(c);

    if (i == 0) {
        i = c->num_mrs != 0 ? c->num_mrs : 1;
        if (table_grow(c) != 0)
            return -ENOMEM;
    }
    c->mrs[i] = mr;
    c->mr_hint = i + 1;
    mr->ib.lkey = mr->ib.rkey = i << 8 | c->mr_gen[i];
    mr->ib.handle = i;
    return 0;
}

struct swv_mr *swv_mr_find(struct swv_ctx *c, uint32_t key)
{
    uint32_t i = key >> 8;

    if (i >= c->num_mrs || c->mrs[i] == NULL || c->mrs[i]->ib.lkey != key)
        return NULL;
    return c->mrs[i];
}

void *swv_mr_range(struct swv_ctx *c, struct ibv_pd *pd, uint32_t key,
                   uint64_t addr, uint64_t len, int access)
{
    struct swv_mr *mr = swv_mr_find(c, key);

    if (mr == NULL || mr->ib.pd != pd || (mr->access & access) != access)
        return NULL;
    if (addr < mr->iova || len > mr->ib.length ||
        addr - mr->iova > mr->ib.length - len)
        return NULL;
    return (char *)mr->ib.addr + (addr - mr->iova);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Kernels before 5.14 don't know the advice and say EINVAL to all of it. */
static bool madvise_is_old(void *page_addr, size_t page)
{
    return madvise(page_addr, page, MADV_POPULATE_READ) != 0 && errno == EINVAL;
}

/*
 * Pages that are not there, or not writable where that is asked, can't be
 * pinned: the kernel says EFAULT. Only the first one is tried for writing.
 */
static bool range_is_mapped(void *addr, size_t len, bool write)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)addr & ~(page - 1);

    if (len == 0)
        return true;
    if (msync((void *)from, (uintptr_t)addr + len - from, MS_ASYNC) != 0)
        return false;
    return !write || madvise((void *)from, page, MADV_POPULATE_WRITE) == 0 ||
           (errno == EINVAL && madvise_is_old((void *)from, page));
}

static int reg_check(void *addr, size_t len, unsigned int access)
{
    const unsigned int remote =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const unsigned int known =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
    if (access & IBV_ACCESS_ON_DEMAND)
        return EOPNOTSUPP;
    if ((access & ~known) != 0)
        return EOPNOTSUPP;
    if ((access & remote) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if ((uintptr_t)addr + len < (uintptr_t)addr)
        return EINVAL;
    return range_is_mapped(addr, len, access & IBV_ACCESS_LOCAL_WRITE) ? 0
                                                                       : EFAULT;
}

SWV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
                                           size_t length, uint64_t iova,
                                           unsigned int access)
{
    struct swv_ctx *c = swv_ctx(pd->context);
    int ret = reg_check(addr, length, access);
    struct swv_mr *mr;

    if (ret == 0)
        ret = swv_fault_verb(c, SWV_VERB_REG_MR);
    if (ret != 0 || (mr = calloc(1, sizeof(*mr))) == NULL) {
        errno = ret != 0 ? ret : ENOMEM;
        return NULL;
    }
    mr->ib.context = pd->context;
    mr->ib.pd = pd;
    mr->ib.addr = addr;
    mr->ib.length = length;
    mr->iova = iova;
    mr->access = (int)access;
    swv_lock(c);
    ret = table_insert(c, mr);
    if (ret == 0)
        ((struct swv_pd *)pd)->refs++;
    swv_unlock(c);
    if (ret == 0)
        return &mr->ib;
    free(mr);
    errno = -ret;
    return NULL;
}

SWV_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
                                     size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr,
                            (unsigned int)access);
}

SWV_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
                                          size_t length, uint64_t iova,
                                          int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

/*
 * Any file that can be mapped will do for a dma-buf.  Memory of a real one
 * can't always be mapped; a device would not have to.
 */
SWV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                            size_t length, uint64_t iova,
                                            int fd, int access)
{
    const uint64_t in_page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    size_t skew = offset & in_page;
    struct ibv_mr *mr;
    void *mapping;

    if (fcntl(fd, F_GETFD) < 0)
        return NULL; /* EBADF */
    if ((offset & in_page) != (iova & in_page)) {
        errno = EINVAL; /* the kernel's rule */
        return NULL;
    }
    mapping = mmap(NULL, length + skew, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                   (off_t)(offset - skew));
    if (mapping == MAP_FAILED)
        return NULL;
    mr = ibv_reg_mr_iova2(pd, (char *)mapping + skew, length, iova,
                          (unsigned int)access);
    if (mr == NULL) {
        munmap(mapping, length + skew);
        return NULL;
    }
    ((struct swv_mr *)mr)->mapping = mapping;
    ((struct swv_mr *)mr)->mapping_len = length + skew;
    return mr;
}

SWV_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct swv_mr *mr = (struct swv_mr *)ibmr;
    struct swv_ctx *c = swv_ctx(ibmr->context);

    swv_lock(c);
    c->mrs[ibmr->handle] = NULL;
    c->mr_gen[ibmr->handle]++;
    ((struct swv_pd *)ibmr->pd)->refs--;
    swv_unlock(c);
    if (mr->mapping != NULL)
        munmap(mr->mapping, mr->mapping_len);
    free(mr);
    return 0;
}
