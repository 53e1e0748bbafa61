"""Django: inspectdb, and its ORM over models that it wrote itself."""

import contextlib
import io
import json
import sys

import django
from django.conf import settings
from django.core.management import call_command

host, port = sys.argv[1:]
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": host, "PORT": port, "USER": "noonmark", "NAME": "noonmark",
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)  # fmt: skip
django.setup()

from django.db import connection, models, transaction  # noqa: E402 - needs the settings

told: dict[str, object] = {}
with connection.cursor() as cursor:
    told["tables"] = sorted(
        (info.name, info.type)
        for info in connection.introspection.get_table_list(cursor)
        if info.name in ("shop", "sale", "dear")
    )
    told["key"] = connection.introspection.get_primary_key_column(cursor, "shop")
    constraints = connection.introspection.get_constraints(cursor, "shop")
    told["constraints"] = sorted(
        [each["columns"], each["primary_key"], each["index"]]
        for each in constraints.values()
        if each["unique"] or each["index"]
    )

written = io.StringIO()
call_command("inspectdb", "shop", "sale", "dear", include_views=True, stdout=written)
source = written.getvalue()
told["inspectdb"] = sorted(
    line.strip() for line in source.splitlines() if " = models." in line and "class" not in line
)
module = {"__name__": "shop_models"}
with contextlib.suppress(RuntimeError):
    code = source.replace("class Meta:", "class Meta:\n        app_label = 'shop'")
    exec(compile(code, "models", "exec"), module)
shop, sale = module["Shop"], module["Sale"]
shop.objects.create(id=1, name="one", opened="2026-01-02", rating="4.50")
shop.objects.bulk_create([shop(id=2, name="two"), shop(id=3, name="three")])
sale.objects.create(id=10, shop_id=1, at="2026-01-02T03:04:05Z", cents=250)
shop.objects.filter(id=3).update(name="drei")
found, made = shop.objects.update_or_create(id=2, defaults={"name": "zwei"})
told["updated"] = [found.name, made]
with contextlib.suppress(ValueError), transaction.atomic():
    shop.objects.filter(id=1).delete()
    raise ValueError("undone")
with transaction.atomic():
    shop.objects.create(id=4, name="four")
    with contextlib.suppress(ValueError), transaction.atomic():
        shop.objects.create(id=5, name="five")
        raise ValueError("undone to a savepoint")
told["names"] = list(shop.objects.order_by("-id").values_list("name", flat=True))
told["sum"] = sale.objects.aggregate(models.Sum("cents"))["cents__sum"]
told["grouped"] = list(
    shop.objects.values("rating")
    .annotate(n=models.Count("id"))
    .order_by("n")
    .values_list("n", flat=True)
)
told["deleted"] = shop.objects.filter(name__icontains="R").delete()[0]
told["exists"] = shop.objects.filter(name__startswith="on").exists()
told["page"] = [each.name for each in shop.objects.order_by("id")[1:3]]
told["dates"] = [str(each) for each in sale.objects.dates("at", "month")]
print(json.dumps(told))
